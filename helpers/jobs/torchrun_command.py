"""The command line and the environment of a torchrun agent.

Every flag here is one that the installed torchrun has: a test asks `torchrun --help`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from helpers.jobs.torchrun_log import MARK
from helpers.ranks.connection import RESOLVER
from helpers.ranks.failures import LaunchError

NOT_INHERITED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "GROUP_RANK", "ROLE_RANK")
"""What says which rank a process is: those that it starts are others."""


def check_arguments(script: str | Path, nproc: int, nnodes: int | str, rdzv: str) -> Path:
    """Return the script's whole path. Raise LaunchError for arguments that no job can have."""
    path = Path(script).resolve()
    if not path.is_file():
        raise LaunchError(f"there is no script {str(script)!r}. Give the path of a file.")
    if not 1 <= nproc <= 64:
        raise LaunchError(f"nproc_per_node must be between 1 and 64; got {nproc}.")
    if rdzv not in {"static", "c10d"}:
        raise LaunchError(f"rdzv must be 'static' or 'c10d'; got {rdzv!r}.")
    low, high = node_range(nnodes)
    if not 1 <= low <= high <= 16:
        raise LaunchError(
            f"nnodes must be a number or a range 'low:high' up to 16; got {nnodes!r}."
        )
    if low != high and rdzv == "static":
        raise LaunchError(
            "static rendezvous has a fixed number of nodes; a range needs rdzv='c10d'."
        )
    return path


def node_range(nnodes: int | str) -> tuple[int, int]:
    """Read a number of nodes, or a range of them: "1:3" gives 1 and 3."""
    low, _, high = str(nnodes).partition(":")
    try:
        return int(low), int(high or low)
    except ValueError:
        return 0, 0


def options_of(
    nproc: int, nnodes: int | str, rdzv: str, max_restarts: int, port: int
) -> tuple[str, ...]:
    """Return the flags that every agent of a job has; port: where they meet, if one must be named."""
    options = ["--nnodes", str(nnodes), "--nproc-per-node", str(nproc)]
    alone = rdzv == "c10d" and str(nnodes) in {"1", "1:1"}
    if alone:  # c10d at a port that the agent itself lets the system choose
        options = ["--standalone", "--nproc-per-node", str(nproc)]
    if max_restarts:
        options += ["--max-restarts", str(max_restarts)]
    if alone:
        return tuple(options)
    if rdzv == "static":
        return (*options, "--master-addr", "127.0.0.1", "--master-port", str(port))
    options += ["--rdzv-backend", "c10d", "--local-addr", "127.0.0.1"]
    options += ["--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", "job"]
    # How long to wait for more nodes once the lower number is there: 30 s would be the default.
    return (*options, "--rdzv-conf", "last_call_timeout=1,join_timeout=60")


def environment_of(more: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return what agents inherit: this process's environment, without what makes it a worker or rank."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in NOT_INHERITED
        and not name.startswith(("TORCHELASTIC_", "REAL_RANKS_", "LOCAL_"))
    }
    return {
        **kept,
        **RESOLVER,
        "OMP_NUM_THREADS": "1",
        "LOGLEVEL": "INFO",  # torchrun reports rounds and exit codes at this level
        "PYTHONUNBUFFERED": "1",  # what a worker printed before a kill -9 is not lost
        "TMPDIR": str(folder),
        "GLOO_SOCKET_IFNAME": "lo0" if sys.platform == "darwin" else "lo",
        "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": MARK,
        **more,
    }
