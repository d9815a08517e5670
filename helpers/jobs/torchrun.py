"""torchrun(): run a script under real torchrun agents, as one or several "nodes" on this machine.

script --command--> OwnedPrograms.start (an agent for each node) --> workers --output--> Round, Worker
                        |                                                            |
                  start_torchrun: kill, add_node, wait                         TorchrunRun
in every case: the supervisor behind `OwnedPrograms` ends every process

Notebooks call `torchrun`. Checks that run an answer as a script call `start_job`, even inside a rank. No code
of this module runs in the workers, so a script runs as it does outside the course.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from helpers.jobs.owned import OwnedPrograms
from helpers.jobs.ports import held_port
from helpers.jobs.run import Agent, TorchrunFailed, TorchrunRun, find_failure
from helpers.jobs.stacks import FAULTHANDLER, describe_place, has_dump, read_end
from helpers.jobs.torchrun_log import WORKER_MARK, agent_output, parse_rounds
from helpers.ranks.budget import Budget
from helpers.ranks.cells import ipython
from helpers.ranks.connection import RESOLVER
from helpers.ranks.failures import LaunchError, Stopped, describe_timeout
from helpers.ranks.launch_options import check_timeout
from helpers.ranks.rank_context import check_launch_allowed
from helpers.ranks.stop import raise_first_stop

# Variables that identify a process as a rank. Processes started by a rank receive new values.
NOT_INHERITED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "GROUP_RANK", "ROLE_RANK")
_POLL_S = 0.05
# Time for other agents to exit after one has failed. Static agents would wait for minutes.
_EXIT_GRACE_S = 3.0
# Time for workers to write their stacks after a timeout.
_DUMP_S = 2.0


def script_path(script: str | Path) -> Path:
    """Return the absolute path of a script. Raise LaunchError if there is no such file."""
    path = Path(script).resolve()
    if not path.is_file():
        raise LaunchError(f"there is no script {str(script)!r}. Give the path of a file.")
    return path


@dataclass(frozen=True)
class JobOptions:
    """The options of a job. See `torchrun` for the fields."""

    script: Path
    nproc_per_node: int = 2
    nnodes: int | str = 1
    args: Sequence[str] = ()
    rdzv: str = "c10d"
    max_restarts: int = 0
    env: Mapping[str, str] | None = None
    timeout: float = 60.0

    def __post_init__(self) -> None:
        """Raise LaunchError for impossible options."""
        low, high = self.nodes
        if not 1 <= self.nproc_per_node <= 64:
            raise LaunchError(
                f"nproc_per_node must be between 1 and 64; got {self.nproc_per_node}."
            )
        if self.rdzv not in {"static", "c10d"}:
            raise LaunchError(f"rdzv must be 'static' or 'c10d'; got {self.rdzv!r}.")
        if not 1 <= low <= high <= 16:
            raise LaunchError(
                f"nnodes must be a number or a range 'low:high' up to 16; got {self.nnodes!r}."
            )
        if low != high and self.rdzv == "static":
            raise LaunchError(
                "static rendezvous has a fixed number of nodes; a range needs rdzv='c10d'."
            )

    @property
    def nodes(self) -> tuple[int, int]:
        """The lowest and the highest number of nodes: 1 and 3 for "1:3"."""
        low, _, high = str(self.nnodes).partition(":")
        try:
            return int(low), int(high or low)
        except ValueError:
            return 0, 0

    def options(self, port: int) -> tuple[str, ...]:
        """Return the flags for every agent. port: the port of their rendezvous, if they need one.

        The installed torchrun knows each of these flags: a test runs `torchrun --help`.
        """
        alone = self.rdzv == "c10d" and self.nodes == (1, 1)
        # A single agent lets the system choose a port.
        flags = ["--standalone"] if alone else ["--nnodes", str(self.nnodes)]
        flags += ["--nproc-per-node", str(self.nproc_per_node)]
        if self.max_restarts:
            flags += ["--max-restarts", str(self.max_restarts)]
        if alone:
            return tuple(flags)
        if self.rdzv == "static":
            return (*flags, "--master-addr", "127.0.0.1", "--master-port", str(port))
        flags += ["--rdzv-backend", "c10d", "--local-addr", "127.0.0.1"]
        flags += ["--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", "job"]
        # Time to wait for more nodes when there are enough; the default is 30 s.
        return (*flags, "--rdzv-conf", "last_call_timeout=1,join_timeout=60")


def agent_environment(extra: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return the environment for agents: this process's, without the variables of workers and ranks."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in NOT_INHERITED
        and not name.startswith(("TORCHELASTIC_", "REAL_RANKS_", "LOCAL_"))
    }
    return {
        **kept,
        **RESOLVER,
        **FAULTHANDLER,
        "OMP_NUM_THREADS": "1",
        "LOGLEVEL": "INFO",  # torchrun reports rounds and exit codes at this level
        "PYTHONUNBUFFERED": "1",  # keeps a worker's output before a kill -9
        "TMPDIR": str(folder),
        "GLOO_SOCKET_IFNAME": "lo0" if sys.platform == "darwin" else "lo",
        "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": WORKER_MARK,
        **extra,
    }


@dataclass(frozen=True)
class LiveWorker:
    """A worker process that is running now."""

    node: int
    rank: int
    local_rank: int
    world_size: int
    restart: int
    pid: int


@dataclass
class TorchrunJob:
    """A running job: inspect it, kill workers, change its size, and wait for its end."""

    job_options: JobOptions
    owned: OwnedPrograms
    port: int
    start_s: float
    budget: Budget
    commands: list[tuple[str, ...]] = field(default_factory=list)
    removed: set[int] = field(default_factory=set)

    def add_node(self) -> int:
        """Start one more agent, as on another machine, and return its node number."""
        node = len(self.commands)
        options = self.job_options
        own = ("--node-rank", str(node)) if options.rdzv == "static" else ()
        words = (*options.options(self.port), *own, str(options.script), *map(str, options.args))
        self.commands.append(("torchrun", *words))
        kept = ("--log-dir", str(self._log_folder(node)), "--tee", "3")
        argv = (sys.executable, "-m", "torch.distributed.run", *kept, *words)
        env = agent_environment(options.env or {}, self.owned.folder)
        try:
            self.owned.start(f"node{node}", argv, env=env, cwd=options.script.parent)
        except OSError as error:
            raise LaunchError(f"the agent of node {node} could not start: {error}") from None
        return node

    def remove_node(self, node: int) -> None:
        """End a node by sending SIGTERM to its agent, which ends its workers. Other nodes notice it later."""
        self.removed.add(node)
        self.owned.send(f"node{node}", signal.SIGTERM)

    def workers(self) -> list[LiveWorker]:
        """Return the running workers, in rank order."""
        import psutil

        found = []
        for key, pid in self.owned.pids.items():
            if key not in self.owned.running():
                continue
            try:
                children = psutil.Process(pid).children()
            except psutil.Error:
                continue
            for child in children:
                try:
                    found.append(
                        _live_worker(int(key.removeprefix("node")), child.pid, child.environ())
                    )
                except (psutil.Error, KeyError, ValueError):
                    continue  # The process is between its fork and its exec, or has exited.
        return sorted(found, key=lambda worker: (worker.rank, worker.node))

    def kill(self, rank: int, number: int = signal.SIGKILL) -> None:
        """Send a signal to the worker of this rank. Raise LookupError if it is not running."""
        alive = self.workers()
        for worker in alive:
            if worker.rank == rank:
                os.kill(worker.pid, number)
                return
        ranks = ", ".join(str(worker.rank) for worker in alive) or "none"
        raise LookupError(f"no worker of rank {rank} is alive now; alive: {ranks}.")

    def wait_for(self, text: str, count: int = 1) -> None:
        """Wait until workers have printed `text` `count` times, in all rounds together.

        Raise TorchrunFailed if the job ends, or times out, before that.
        """
        while self._worker_output().count(text) < count:
            over = not self.owned.running()
            if over and self._worker_output().count(text) >= count:
                return
            if over or self.budget.is_spent(time.monotonic()):
                raise self._end_as_failed(
                    f"{text!r} was not printed {count} times before the job's "
                    + ("end." if over else f"time was up ({self.job_options.timeout:g} s).")
                )
            self.owned.poll(_POLL_S)

    def wait(self) -> TorchrunRun:
        """Wait until every agent has ended, and return the result. Never raises for a failure."""
        give_up, late = float("inf"), ""
        while self.owned.running():
            now = time.monotonic()
            gone = {f"node{node}" for node in self.removed}
            if any(code for key, code in self.owned.exits.items() if key not in gone):
                give_up = min(give_up, now + _EXIT_GRACE_S)
            if self.budget.is_spent(now):
                spent = describe_timeout(
                    self.job_options.timeout, now - self.start_s, self.budget.by_the_clock
                )
                late = f"{spent}; all agents and workers were terminated."
                break
            if now >= give_up:
                break
            self.owned.poll(_POLL_S)
        exits = dict(self.owned.exits)
        if not late:
            self.owned.end()
            return self._result(self._agents(exits), late)
        # Read the output first, because the signals will cause further output.
        agents = self._agents(exits)
        places = self._find_places()
        self.owned.end()
        return self._result(agents, "\n".join([late, *places]))

    def _find_places(self) -> list[str]:
        """Return each running worker's position, one line per worker. This kills the workers."""
        files = {worker: self._error_file(worker) for worker in self.workers()}
        for worker in files:
            with suppress(ProcessLookupError):
                os.kill(worker.pid, signal.SIGABRT)
        deadline = time.monotonic() + _DUMP_S
        while time.monotonic() < deadline and not all(
            has_dump(read_end(path)) for path in files.values()
        ):
            self.owned.poll(_POLL_S)
        places = {worker: describe_place(read_end(path)) for worker, path in files.items()}
        return [f"  rank {worker.rank}: {place}" for worker, place in places.items() if place]

    def _error_file(self, worker: LiveWorker) -> Path:
        """Return the file in which a worker's agent keeps its error output."""
        folder = self._log_folder(worker.node)
        pattern = f"*/attempt_{worker.restart}/{worker.local_rank}/stderr.log"
        return next(iter(sorted(folder.glob(pattern))[-1:]), folder / "missing")

    def _agents(self, exits: Mapping[str, int]) -> tuple[Agent, ...]:
        agents = []
        for node, command in enumerate(self.commands):
            pieces = self.owned.pieces(f"node{node}")
            rounds = parse_rounds(node, pieces, self._log_folder(node))
            exitcode = exits.get(f"node{node}")
            agents.append(Agent(node, command, exitcode, agent_output(pieces), rounds))
        return tuple(agents)

    def _result(self, agents: tuple[Agent, ...], timeout_text: str) -> TorchrunRun:
        failure = find_failure(tuple(a for a in agents if a.node not in self.removed), timeout_text)
        seconds = time.monotonic() - self.start_s
        run = TorchrunRun(agents, failure, seconds)
        if failure is not None:
            failure.run = run
        return run

    def _end_as_failed(self, why: str) -> TorchrunFailed:
        exits = dict(self.owned.exits)
        self.owned.end()
        failure = self._result(self._agents(exits), why).failure
        assert failure is not None
        return failure

    def _worker_output(self) -> str:
        pieces = [p for key in self.owned.pids for p in self.owned.pieces(key) if p.stream == 1]
        return "".join(piece.text for piece in pieces)

    def _log_folder(self, node: int) -> Path:
        return self.owned.folder / f"logs{node}"


def _live_worker(node: int, pid: int, env: Mapping[str, str]) -> LiveWorker:
    return LiveWorker(
        node,
        int(env["RANK"]),
        int(env["LOCAL_RANK"]),
        int(env["WORLD_SIZE"]),
        int(env["TORCHELASTIC_RESTART_COUNT"]),
        pid,
    )


@contextmanager
def start_job(options: JobOptions) -> Iterator[TorchrunJob]:
    """Start a job like `start_torchrun`, even inside a rank, for programs of checks."""
    check_timeout(options.timeout)
    with raise_first_stop(), OwnedPrograms() as owned, held_port() as port:
        start = time.monotonic()
        job = TorchrunJob(options, owned, port, start, Budget(owned.alive, options.timeout, start))
        for _ in range(options.nodes[0]):
            job.add_node()
        yield job


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
    """Start a job like `torchrun`, and yield a handle for controlling it while it runs.

    See `torchrun` for the arguments. When the `with` block ends, every process of the job is killed.
    """
    check_launch_allowed()
    path = script_path(script)
    with start_job(
        JobOptions(path, nproc_per_node, nnodes, args, rdzv, max_restarts, env, timeout)
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
    """Run a script under real torchrun agents and return the results of its workers.

    Args:
        script: The path of the script.
        nproc_per_node: Number of workers that each agent starts.
        nnodes: Number of agents to start on this machine, each of them a "node". For a range such as "1:3",
            which requires rdzv="c10d", the lower number is started.
        args: The script's arguments.
        rdzv: "c10d" or "static".
        max_restarts: The maximum number of times that torchrun restarts the workers after a failure.
        env: Environment variables in addition to the inherited variables.
        timeout: The time limit for the whole job, in seconds.
        on_failure: "raise", or "return", which returns a result with its `failure`.

    Raises:
        LaunchError: Nothing could be started.
        TorchrunFailed: An agent failed.
    """
    if on_failure not in {"raise", "return"}:
        raise LaunchError(f"on_failure must be 'raise' or 'return'; got {on_failure!r}.")
    check_launch_allowed()
    path = script_path(script)
    asked = JobOptions(path, nproc_per_node, nnodes, args, rdzv, max_restarts, env, timeout)
    job: TorchrunJob | None = None
    try:
        with start_job(asked) as job:
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
