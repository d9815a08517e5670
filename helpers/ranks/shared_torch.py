"""Fork this process's rank server after importing torch once, so that both share torch's memory.

    import torch, once --fork--> rank server (single thread) --fork--> ranks
         `--continues as--> Jupyter kernel or command

Without this, the process and its rank server each import torch, which takes twice the processor time and
twice the memory.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from helpers.ranks import launcher, preload
from helpers.ranks.connection import start_method
from helpers.ranks.failures import LaunchError
from helpers.ranks.placement import ForkingSite
from helpers.ranks.rank_context import check_launch_allowed

_BLAS_THREADS = "OPENBLAS_NUM_THREADS"


def share_torch(modules: Sequence[str]) -> None:
    """Import torch and `modules`, then fork the rank server from this process.

    Call it before anything starts a thread, because a fork copies only the calling thread. If fork is unsafe
    or there is another thread, the server is started as a separate program by the first launch.
    """
    if not _may_fork():
        return
    with _one_blas_thread():
        preload.import_for_sharing(modules)
        if len(os.listdir("/proc/self/task")) == 1:
            launcher.connect(ForkingSite())


def _may_fork() -> bool:
    with suppress(LaunchError):
        check_launch_allowed()
        return sys.platform == "linux" and start_method() == "fork"
    return False


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Keep numpy's OpenBLAS from starting threads on import. Later calls start as many threads as usual."""
    given = os.environ.get(_BLAS_THREADS)
    os.environ[_BLAS_THREADS] = "1"
    try:
        yield
    finally:
        del os.environ[_BLAS_THREADS]
        if given is not None:
            os.environ[_BLAS_THREADS] = given
    usual = given or os.environ.get("OMP_NUM_THREADS") or str(len(os.sched_getaffinity(0)))
    if usual.isdecimal() and usual != "1":
        from threadpoolctl import threadpool_limits

        threadpool_limits(int(usual), user_api="blas")
