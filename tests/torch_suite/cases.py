"""torch's own tests as functions of one rank: c10d over gloo, and RPC.

BACKEND and WORLD_SIZE must be set before this is imported, because torch's modules read them.
"""

from __future__ import annotations

import os
import sys
import unittest
from contextlib import suppress
from datetime import timedelta
from types import ModuleType
from typing import Any

import torch.distributed as dist
from torch.testing._internal import common_utils
from torch.testing._internal.common_distributed import TEST_SKIPS
from torch.testing._internal.distributed import distributed_test as c10d
from torch.testing._internal.distributed import rpc_utils
from torch.testing._internal.distributed.rpc.faulty_rpc_agent_test_fixture import (
    FaultyRpcAgentTestFixture,
)
from torch.testing._internal.distributed.rpc.tensorpipe_rpc_agent_test_fixture import (
    TensorPipeRpcAgentTestFixture,
)

PASSED, SKIPPED = "passed", "skipped"
# Exit codes of the decorators that skip a test.
_SKIPS = {skip.exit_code for skip in TEST_SKIPS.values()}


class C10d(c10d.TestDistBackend, c10d.DistributedTest._DistTestBase):
    """The tests of process groups, for any number of ranks."""


def _suites() -> dict[str, dict[str, type[Any]]]:
    tensorpipe = [*rpc_utils.GENERIC_TESTS, *rpc_utils.TENSORPIPE_TESTS]
    make = rpc_utils.generate_tests
    rpc = make("TensorPipe", TensorPipeRpcAgentTestFixture, tensorpipe, __name__)
    rpc |= make("Faulty", FaultyRpcAgentTestFixture, rpc_utils.FAULTY_AGENT_TESTS, __name__)
    return {"c10d": {"C10d": C10d}, "rpc": rpc}


SUITES = _suites()
# torch pickles functions of these classes by module and name.
_here: ModuleType = sys.modules[__name__]
for _name, _class in SUITES["rpc"].items():
    setattr(_here, _name, _class)


def names(suite: str) -> list[str]:
    """Return the names of a suite's tests: "class.method"."""
    return sorted(
        f"{name}.{method}"
        for name, tests in SUITES[suite].items()
        for method in dir(tests)
        if method.startswith("test_")
    )


def world_size_of(suite: str, name: str) -> int:
    """Return the number of ranks that a test needs."""
    if suite == "c10d":
        return int(os.environ["WORLD_SIZE"])
    return int(SUITES[suite][name.partition(".")[0]]("runTest").world_size)


def run(rank: int, world_size: int, suite: str, name: str, folder: str, joins: bool) -> str:
    """Run one rank of a test, as torch's `_run` does; return PASSED or SKIPPED, or raise its error.

    folder: shared by all of its ranks. joins: whether the rank must join the default process group first.
    """
    made_in, _, method = name.partition(".")
    os.environ |= {
        "TEMP_DIR": folder,
        "INIT_METHOD": f"file://{folder}/init_dir/store",
        "BACKEND": "gloo",
        "WORLD_SIZE": str(world_size),
        "MASTER_ADDR": "127.0.0.1",
    }
    c10d.INIT_METHOD = os.environ["INIT_METHOD"]
    case = SUITES[suite][made_in](method)
    case.rank, case.file_name = rank, f"{folder}/store"
    if suite == "c10d":
        if joins:
            limit = c10d.CUSTOM_PG_TIMEOUT.get(method, c10d.default_pg_timeout)
            dist.init_process_group(
                "gloo",
                init_method=f"file://{folder}/store",
                world_size=world_size,
                rank=rank,
                timeout=timedelta(seconds=limit),
            )
        case._barrier()
    common_utils.set_rng_seed()
    try:
        getattr(case, method)()
    except unittest.SkipTest:
        return SKIPPED
    except SystemExit as left:
        if left.code not in _SKIPS:
            raise
        return SKIPPED
    if suite == "c10d":
        case._barrier()
    with suppress(AssertionError, ValueError):  # the test has left it already
        dist.destroy_process_group()
    return PASSED
