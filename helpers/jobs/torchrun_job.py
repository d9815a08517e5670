"""A job under torchrun while it runs: look at it, hurt it, change its size, wait for its end.

Called by `torchrun` in notebooks, and by checks that run an answer as a script (inside a rank).
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from helpers.jobs.owned import Owned
from helpers.jobs.ports import held_port
from helpers.jobs.run import Agent, TorchrunFailed, TorchrunRun, failure_of
from helpers.jobs.torchrun_command import check_arguments, environment_of, node_range, options_of
from helpers.jobs.torchrun_log import own_words, rounds_of
from helpers.ranks.budget import Budget
from helpers.ranks.failures import LaunchError
from helpers.ranks.stop import one_stop

_LOOK_S = 0.05
_ENDING_S = 3.0
"""How long other agents may go on after one has failed: static ones would wait for minutes."""


@dataclass(frozen=True)
class LiveWorker:
    """A worker process that is alive now."""

    node: int
    rank: int
    local_rank: int
    world_size: int
    restart: int
    pid: int


@dataclass
class TorchrunJob:
    """A job that runs: look at it, hurt it, change its size, and wait for its end."""

    owned: Owned
    script: Path
    options: tuple[str, ...]
    script_args: tuple[str, ...]
    static: bool
    env: dict[str, str]
    timeout_s: float
    start_s: float
    budget: Budget
    commands: list[tuple[str, ...]] = field(default_factory=list)
    removed: set[int] = field(default_factory=set)

    def add_node(self) -> int:
        """Start one more agent, as another machine would; give its node number."""
        node = len(self.commands)
        own = ("--node-rank", str(node)) if self.static else ()
        words = (*self.options, *own, str(self.script), *self.script_args)
        self.commands.append(("torchrun", *words))
        kept = ("--log-dir", str(self._logs(node)), "--tee", "3")
        argv = (sys.executable, "-m", "torch.distributed.run", *kept, *words)
        try:
            self.owned.start(f"node{node}", argv, env=self.env, cwd=self.script.parent)
        except OSError as error:
            raise LaunchError(f"the agent of node {node} could not start: {error}") from None
        return node

    def remove_node(self, node: int) -> None:
        """End a node: SIGTERM to its agent, which ends its workers. The others notice after a while."""
        self.removed.add(node)
        self.owned.send(f"node{node}", signal.SIGTERM)

    def workers(self) -> list[LiveWorker]:
        """Return the workers that are alive now, in rank order."""
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
                    found.append(_live(int(key.removeprefix("node")), child.pid, child.environ()))
                except (psutil.Error, KeyError, ValueError):
                    continue  # between its fork and its exec, or gone
        return sorted(found, key=lambda worker: (worker.rank, worker.node))

    def kill(self, rank: int, number: int = signal.SIGKILL) -> None:
        """Send a signal to the worker of this rank. Raise LookupError if none is alive."""
        alive = self.workers()
        for worker in alive:
            if worker.rank == rank:
                os.kill(worker.pid, number)
                return
        ranks = ", ".join(str(worker.rank) for worker in alive) or "none"
        raise LookupError(f"no worker of rank {rank} is alive now; alive: {ranks}.")

    def wait_for(self, text: str, count: int = 1) -> None:
        """Wait until workers have printed `text` that many times, in all rounds together.

        Raise TorchrunFailed if the job ends, or its time, before that.
        """
        while self._printed().count(text) < count:
            over = not self.owned.running()
            if over and self._printed().count(text) >= count:
                return
            if over or self.budget.is_spent(time.monotonic()):
                raise self._failed(
                    f"{text!r} was not printed {count} times before the job's "
                    + ("end." if over else f"time was up ({self.timeout_s:g} s).")
                )
            self.owned.look(_LOOK_S)

    def wait(self) -> TorchrunRun:
        """Wait until every agent has ended and give back what happened. Never raises for a failure."""
        give_up, late = float("inf"), ""
        while self.owned.running():
            now = time.monotonic()
            gone = {f"node{node}" for node in self.removed}
            if any(code for key, code in self.owned.exits.items() if key not in gone):
                give_up = min(give_up, now + _ENDING_S)
            if self.budget.is_spent(now):
                late = f"not done after {self.timeout_s:g} s; all agents and workers were ended."
                break
            if now >= give_up:
                break
            self.owned.look(_LOOK_S)
        exits = dict(self.owned.exits)
        self.owned.end()
        return self._result(exits, late)

    def _result(self, exits: Mapping[str, int], late: str) -> TorchrunRun:
        agents = []
        for node, command in enumerate(self.commands):
            pieces = self.owned.pieces(f"node{node}")
            rounds = rounds_of(node, pieces, self._logs(node))
            exitcode = exits.get(f"node{node}")
            agents.append(Agent(node, command, exitcode, own_words(pieces), rounds))
        failure = failure_of(tuple(a for a in agents if a.node not in self.removed), late)
        seconds = time.monotonic() - self.start_s
        run = TorchrunRun(tuple(agents), failure, seconds)
        if failure is not None:
            failure.run = run
        return run

    def _failed(self, why: str) -> TorchrunFailed:
        exits = dict(self.owned.exits)
        self.owned.end()
        failure = self._result(exits, why).failure
        assert failure is not None
        return failure

    def _printed(self) -> str:
        pieces = [p for key in self.owned.pids for p in self.owned.pieces(key) if p.stream == 1]
        return "".join(piece.text for piece in pieces)

    def _logs(self, node: int) -> Path:
        return self.owned.folder / f"logs{node}"


@contextmanager
def start_job(
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
    """Do what `start_torchrun` does, also inside a rank: what the program of a check calls."""
    path = check_arguments(script, nproc_per_node, nnodes, rdzv)
    low, _ = node_range(nnodes)
    with one_stop(), Owned() as owned, held_port() as port:
        options = options_of(nproc_per_node, nnodes, rdzv, max_restarts, port)
        start = time.monotonic()
        job = TorchrunJob(
            owned,
            path,
            options,
            tuple(map(str, args)),
            rdzv == "static",
            environment_of(env or {}, owned.folder),
            timeout,
            start,
            Budget(owned.alive, timeout, start),
        )
        for _ in range(low):
            job.add_node()
        yield job


def _live(node: int, pid: int, env: Mapping[str, str]) -> LiveWorker:
    return LiveWorker(
        node,
        int(env["RANK"]),
        int(env["LOCAL_RANK"]),
        int(env["WORLD_SIZE"]),
        int(env["TORCHELASTIC_RESTART_COUNT"]),
        pid,
    )
