"""torchrun(): run a script under real torchrun agents, one or several "nodes" on this machine.

script --command--> Owned.start (an agent for each node) --> workers --output--> Round, Worker
                        |                                                            |
                  start_torchrun: kill, add_node, wait                         TorchrunRun
whatever happens: the supervisor behind `Owned` ends every process

Called from notebooks. Nothing here runs in the workers: a script is what it is outside as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from helpers.jobs.run import TorchrunRun
from helpers.jobs.torchrun_job import TorchrunJob, start_job
from helpers.ranks.cells import ipython
from helpers.ranks.failures import LaunchError, Stopped
from helpers.ranks.inside import refuse_where_ranks_must_not_start


@contextmanager
def start_torchrun(
    script: str | Path,
    nproc_per_node: int = 2,
    *,
    nnodes: int | str = 1,
    args: Sequence[str] = (),
    rdzv: str = "c10d",
    max_restarts: int = 0,
    env: Mapping[str, str] | None = None,
    timeout: float = 60.0,
) -> Iterator[TorchrunJob]:
    """Start a job as `torchrun` does, and give a handle to act on it while it runs.

    See there for the arguments. When the `with` block ends, every process of the job is ended.
    """
    refuse_where_ranks_must_not_start()
    with start_job(
        script,
        nproc_per_node,
        nnodes=nnodes,
        args=args,
        rdzv=rdzv,
        max_restarts=max_restarts,
        env=env,
        timeout=timeout,
    ) as job:
        yield job


def torchrun(
    script: str | Path,
    nproc_per_node: int = 2,
    *,
    nnodes: int | str = 1,
    args: Sequence[str] = (),
    rdzv: str = "c10d",
    max_restarts: int = 0,
    env: Mapping[str, str] | None = None,
    timeout: float = 60.0,
    on_failure: str = "raise",
) -> TorchrunRun:
    """Run a script under real torchrun agents and give back what each of its workers did.

    nnodes: how many agents to start on this machine, each a "node"; or a range "1:3" (rdzv "c10d"
    only), of which the lower number is started. rdzv: "c10d" or "static". env: added to what the
    agents inherit. timeout: seconds for the whole job. on_failure: "raise", or "return" (the result
    carries its failure).

    Raise LaunchError when nothing could be started, TorchrunFailed when an agent did not end well.
    """
    if on_failure not in {"raise", "return"}:
        raise LaunchError(f"on_failure must be 'raise' or 'return'; got {on_failure!r}.")
    job: TorchrunJob | None = None
    try:
        with start_torchrun(
            script,
            nproc_per_node,
            nnodes=nnodes,
            args=args,
            rdzv=rdzv,
            max_restarts=max_restarts,
            env=env,
            timeout=timeout,
        ) as job:
            run = job.wait()
    except KeyboardInterrupt:
        if job is None:
            raise
        raise Stopped(nproc_per_node * len(job.commands)) from None
    if run.failure is not None and on_failure == "raise":
        _show(run)
        raise run.failure
    return run


def _show(run: TorchrunRun) -> None:
    if ipython() is not None:
        from IPython.display import display

        display(run)
