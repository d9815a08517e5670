"""What a rank server imports before it forks ranks, so that no rank has to.

Called by `server`, and behind walls by the process from which servers are forked.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import sys
from collections.abc import Sequence

PRELOAD = (
    "numpy.random",
    "torch.nn.parallel",
    "torch.distributed._functional_collectives",
    "torch.distributed.tensor",
    "torch.distributed.optim",
    "torch.distributed.fsdp",
    "torch.distributed.tensor.parallel",
    "torch.distributed.pipelining",
    "torch.distributed.checkpoint",
    "torch.distributed.algorithms.join",
    "torch.distributed.algorithms.ddp_comm_hooks.default_hooks",
    "torch._dynamo",
    "torch.utils.data",
)
"""What a grader's rank servers import, because each takes a fork's first user 0.1 to 1 s. A learner's
server imports only what `wanted` has found in a programme's text."""


def import_all() -> None:
    """Import what every rank needs, so that none has to after the fork."""
    if "helpers.ranks.worker" in sys.modules:
        return  # whoever forked this process has
    importlib.import_module("torch.distributed").set_debug_level_from_env()
    importlib.import_module("torch").set_num_threads(1)
    importlib.import_module("helpers.ranks.sending")
    importlib.import_module("helpers.trace.kernels").install()
    importlib.import_module("helpers.ranks.worker")
    importlib.import_module("helpers.trace.recorder")
    importlib.import_module("helpers.trace.log")
    gc.freeze()  # keeps the collector from touching, and so copying, pages shared by fork


def preload(names: Sequence[str] = PRELOAD) -> None:
    """Import modules that ranks are likely to want."""
    for name in names:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    if (rules := sys.modules.get("torch._dynamo.trace_rules")) is not None:
        # init_process_group empties this cache; done here, no rank need copy the pages it is on
        rules.clear_lru_cache()
    gc.freeze()
