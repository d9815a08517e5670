"""run_script(): run a script on real ranks, and return the result."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from helpers.ranks.cells import in_kernel
from helpers.ranks.display import Display, NoDisplay
from helpers.ranks.failures import Deadlock, LaunchError, RankFailed, is_consequence
from helpers.ranks.launch_options import Caller, Options, check_timeout, check_world_size
from helpers.ranks.launcher import raise_as_stopped, run_on_ranks
from helpers.ranks.run import Run
from helpers.scripts.ending import explain_as_script
from helpers.scripts.in_rank import THREADS_VARIABLE, run_as_main
from helpers.scripts.read_script import Script, read_script
from helpers.scripts.step_findings import CERTAIN, Finding, find_faults
from helpers.scripts.step_records import RankRecords, read_records
from helpers.trace.silent import silent_faults

MAX_NODES = 16
# A wait of torch that ends ten times later than this counts as endless. torch's default limit is 30 minutes.
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
    """Run an unchanged script on `world_size` real ranks, like torchrun.

    Args:
        path: The script.
        world_size: The number of ranks to start, on all nodes together.
        args: The script's arguments, `sys.argv[1:]`.
        nnodes: The number of simulated nodes. It determines LOCAL_RANK, LOCAL_WORLD_SIZE and GROUP_RANK, but
            all ranks run on this machine.
        env: Environment variables for all ranks.
        timeout: The time limit for the script, in seconds. By default there is no limit.
        on_failure: "raise", or "return" to return a Run with its `failure`.

    Returns:
        The output and trace of all ranks. The `values` are None, because a script has no return value.

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
    """A script with the options of its run. See `run_script` for the fields.

    check_steps: the number of optimizer steps after which to stop and look for silent faults; 0 for no check.
    """

    script: Script
    world_size: int = 2
    args: tuple[str, ...] = ()
    nnodes: int = 1
    env: Mapping[str, str] | None = None
    timeout: float = math.inf
    check_steps: int = 0

    def __post_init__(self) -> None:
        """Raise LaunchError for impossible options."""
        check_world_size(self.world_size)
        check_timeout(self.timeout)
        if self.check_steps < 0:
            raise LaunchError(f"check_steps must be at least 1; got {self.check_steps}.")
        if not 1 <= self.nnodes <= MAX_NODES:
            raise LaunchError(f"nnodes must be from 1 to {MAX_NODES}; got {self.nnodes}.")
        if self.world_size % self.nnodes:
            raise LaunchError(
                f"{self.world_size} ranks cannot be spread evenly over {self.nnodes} nodes."
            )

    def environment(self, rank: int) -> dict[str, str]:
        """Return those of a rank's variables that differ from a launch on one machine."""
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
        """Return the number of threads per operation, chosen as by torchrun; 0 for torch's default."""
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
    check_folder: str = "",
) -> Run:
    """Run a script and always return its Run.

    Args:
        job: The script and its options.
        display: The display for the ranks' positions.
        show_output: A function that receives each rank's output as soon as it is printed.
        record_values: Whether a reader may step through the run and look at its tensors.
        check_folder: The folder for the ranks' records in a check for silent faults; "" for no check.
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
        keeps_last_calls=True,
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
            check_folder,
            job.check_steps,
            script.module,
        ),
        display=display,
        caller=Caller(script.place_of, show_output=show_output),
    )
    return explain_as_script(run)


def check_job(
    job: ScriptJob, display: NoDisplay, **settings: Any
) -> tuple[Run, list[Finding], int]:
    """Run the first steps of a script, and return its Run, its silent faults and the number of steps.

    settings: further arguments of `run_job`.
    """
    with tempfile.TemporaryDirectory(prefix="real-ranks-check-") as folder:
        run = run_job(job, display, check_folder=folder, **settings)
        records = read_records(folder, job.world_size)
    if any(each.stopped for each in records) and _is_consequence_of_stop(run, records):
        run = replace(run, failure=None)
    findings = find_faults(records, job.script.place_of)
    if run.ok:
        dtypes = silent_faults(run.trace, ())
        findings += [Finding("different_dtypes", CERTAIN, (), None, text) for text in dtypes]
        run = replace(run, notes=tuple(note for note in run.notes if note not in dtypes))
    return run, findings, max(each.step_count for each in records)


def _is_consequence_of_stop(run: Run, records: Sequence[RankRecords]) -> bool:
    """Return whether a run failed only because other ranks still needed ranks stopped by the check."""
    failure = run.failure
    if isinstance(failure, Deadlock):
        return not all(each.stopped for each in records)
    return isinstance(failure, RankFailed) and is_consequence(failure.error)
