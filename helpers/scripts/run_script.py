"""run_script(): run a script on real ranks, and return what happened."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helpers.ranks.cells import in_kernel
from helpers.ranks.display import Display, NoDisplay
from helpers.ranks.failures import LaunchError
from helpers.ranks.launch_options import Caller, Options, check_timeout, check_world_size
from helpers.ranks.launcher import raise_as_stopped, run_on_ranks
from helpers.ranks.run import Run
from helpers.scripts.ending import explain_as_script
from helpers.scripts.in_rank import THREADS_VARIABLE, run_as_main
from helpers.scripts.read_script import Script, read_script

MAX_NODES = 16
# A wait of torch that ends ten times later than this counts as endless. torch's own limit is 30 minutes.
HORIZON_S = 30.0


def run_script(
    path: str | Path,
    world_size: int = 2,
    *,
    args: Sequence[Any] = (),
    nnodes: int = 1,
    env: Mapping[str, str] | None = None,
    timeout: float = math.inf,
    on_failure: str = "raise",
) -> Run:
    """Run a script on `world_size` real ranks, unchanged, as torchrun would.

    Args:
        path: The script.
        world_size: How many ranks to start, on all nodes together.
        args: The script's arguments, its `sys.argv[1:]`.
        nnodes: Over how many nodes the ranks pretend to be spread: it sets LOCAL_RANK, LOCAL_WORLD_SIZE and
            GROUP_RANK. All of them run on this machine.
        env: Environment variables for all ranks.
        timeout: The time that the script may take, in seconds. By default it may take any time.
        on_failure: "raise"; or "return", which returns a Run with its `failure`.

    Returns:
        The output and trace of all ranks. Its `values` are None, because a script returns nothing.

    Raises:
        LaunchError: The script could not be started.
        RankFailure: A rank did not succeed, as for `launch`.
    """
    if on_failure not in {"raise", "return"}:
        raise LaunchError(f"on_failure must be 'raise' or 'return'; got {on_failure!r}.")
    display = Display() if in_kernel() else NoDisplay()
    job = ScriptJob(read_script(path), world_size, tuple(map(str, args)), nnodes, env, timeout)
    with raise_as_stopped(world_size):
        run = run_job(job, display, record_values=display.records_values)
    if run.failure is not None and on_failure == "raise":
        display.show_failed(run)
        raise run.failure
    display.show_at_end(run)
    return run


@dataclass(frozen=True)
class ScriptJob:
    """A script with the options of its run. See `run_script` for the fields."""

    script: Script
    world_size: int = 2
    args: tuple[str, ...] = ()
    nnodes: int = 1
    env: Mapping[str, str] | None = None
    timeout: float = math.inf

    def __post_init__(self) -> None:
        """Raise LaunchError for impossible options."""
        check_world_size(self.world_size)
        check_timeout(self.timeout)
        if not 1 <= self.nnodes <= MAX_NODES:
            raise LaunchError(f"nnodes must be from 1 to {MAX_NODES}; got {self.nnodes}.")
        if self.world_size % self.nnodes:
            raise LaunchError(
                f"{self.world_size} ranks cannot be spread evenly over {self.nnodes} nodes."
            )

    def environment(self, rank: int) -> dict[str, str]:
        """Return the variables of a rank that differ from those of a launch on one machine."""
        ranks_per_node = self.world_size // self.nnodes
        node, local_rank = divmod(rank, ranks_per_node)
        return {
            "LOCAL_RANK": str(local_rank),
            "LOCAL_WORLD_SIZE": str(ranks_per_node),
            "GROUP_RANK": str(node),
            "GROUP_WORLD_SIZE": str(self.nnodes),
            **(self.env or {}),
        }

    def threads(self) -> int:
        """Return how many threads an operation of torch uses, as torchrun decides; 0 for torch's choice."""
        asked = {**os.environ, **(self.env or {})}.get(THREADS_VARIABLE, "")
        if asked.isdigit() and int(asked):
            return int(asked)
        return 0 if self.world_size == self.nnodes else 1


def run_job(
    job: ScriptJob,
    display: NoDisplay,
    *,
    show_output: Callable[[int, bytes], None] | None = None,
    record_values: bool = False,
) -> Run:
    """Run a script and always return its Run.

    Args:
        job: The script and its options.
        display: Shows where the ranks are.
        show_output: Receives what each rank prints, as it prints it.
        record_values: Whether a reader may step through the run and look at its tensors.
    """
    script = job.script
    options = Options(
        job.world_size,
        [job.environment(rank) for rank in range(job.world_size)],
        job.timeout,
        "gloo",
        init=False,
        record_values=record_values,
        exit_returns=True,
        horizon_s=HORIZON_S,
        own_temp=False,
    )
    run = run_on_ranks(
        run_as_main,
        options,
        args=(
            str(script.path),
            (script.name, *job.args),
            script.source,
            script.related,
            job.threads(),
        ),
        display=display,
        caller=Caller(script.place_of, show_output=show_output),
    )
    return explain_as_script(run)
