"""The result of a job, frozen data that views and checks read, and the errors of a failed job."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass

from helpers.ranks.failures import RankError, is_consequence
from helpers.ranks.run import PlainError

# An address in a message of gloo. Its port differs in each run and is of no use to a reader.
_ADDRESS_PATTERN = re.compile(r"\[?127\.0\.0\.1\]?:\d+[$\d]*")


@dataclass(frozen=True)
class Worker:
    """One worker process of one round: its ranks, its output, and how it ended if it failed.

    Attributes:
        exitcode: None if the agent reported none, because the worker succeeded or was ended after a peer's
            failure.
        error: The message of its error file, written under `@record`.
        traceback: The text next to that message.
    """

    node: int
    local_rank: int
    rank: int
    output: str = ""
    errors: str = ""
    exitcode: int | None = None
    error: str = ""
    traceback: str = ""


@dataclass(frozen=True)
class Round:
    """One rendezvous, as one agent saw it: which workers it started, when, and how the round ended.

    ending: "succeeded", "failed", "membership changed" or "ended" (with its agent).
    """

    node: int
    restart: int
    group_rank: int
    group_world_size: int
    world_size: int
    workers: tuple[Worker, ...]
    began_s: float
    ended_s: float = 0.0
    ending: str = "ended"


@dataclass(frozen=True)
class Agent:
    """One torchrun process: its node, its command, how it ended, its own output, and its rounds.

    exitcode: None if it had to be ended; minus the signal's number if a signal ended it.
    """

    node: int
    command: tuple[str, ...]
    exitcode: int | None
    words: str
    rounds: tuple[Round, ...]


@dataclass(frozen=True)
class TorchrunRun:
    """What happened under every agent of one job.

    agents: in the order of their start. failure: the reason why the job failed, or None.
    """

    agents: tuple[Agent, ...]
    failure: TorchrunFailed | None = None
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return self.failure is None

    @property
    def rounds(self) -> tuple[Round, ...]:
        """Every rendezvous of every agent, in the order in which they began."""
        found = [made for agent in self.agents for made in agent.rounds]
        return tuple(sorted(found, key=lambda made: made.began_s))

    @property
    def workers(self) -> tuple[Worker, ...]:
        """The workers of each agent's last round, in rank order."""
        last = [w for agent in self.agents if agent.rounds for w in agent.rounds[-1].workers]
        return tuple(sorted(last, key=lambda worker: (worker.rank, worker.node)))

    @property
    def output(self) -> list[str]:
        """The output of the last round's workers, in rank order."""
        return [worker.output for worker in self.workers]


class TorchrunFailed(PlainError):
    """A job under torchrun failed. `.run` holds what was seen until then."""

    run: TorchrunRun | None = None


@dataclass(frozen=True)
class MpiRun:
    """What happened under one mpiexec.

    Attributes:
        command: The command as a reader would type it.
        output: What each rank printed to stdout.
        errors: What each rank printed to stderr.
        exitcode: The exit code of mpiexec; None if it had to be ended.
        failure: The reason why the job failed, or None.
    """

    command: tuple[str, ...]
    output: tuple[str, ...]
    errors: tuple[str, ...]
    exitcode: int | None
    failure: MpiFailed | None = None

    @property
    def ok(self) -> bool:
        return self.failure is None


class MpiFailed(PlainError):
    """A job under mpiexec failed. `.run` holds what was seen until then."""

    run: MpiRun | None = None


def find_failure(agents: tuple[Agent, ...], timeout_text: str) -> TorchrunFailed | None:
    """Return the error of a failed job: which worker failed first, and how.

    timeout_text: set if time was up.
    """
    bad = [agent for agent in agents if agent.exitcode]
    if not bad and not timeout_text:
        return None
    failed = [
        (_cause_rank(worker), made.ended_s, worker.rank, worker)
        for agent in agents
        for made in agent.rounds[-1:]
        for worker in made.workers
        if worker.exitcode is not None or worker.error
    ]
    lines = [timeout_text] if timeout_text else []
    if failed:
        lines.append(describe_worker(min(failed, key=lambda entry: entry[:3])[3]))
    elif bad:
        lines.append(f"the agent of node {bad[0].node} {describe_exit(bad[0].exitcode)}.")
        lines += bad[0].words.splitlines()[-3:]
    return TorchrunFailed("\n".join(lines))


def is_secondary_failure(worker: Worker) -> bool:
    """Return whether a worker failed only because a peer had exited, judged by its last lines."""
    last = worker.error or "\n".join(worker.errors.splitlines()[-2:])
    return is_consequence(RankError(worker.rank, "", last))


def _cause_rank(worker: Worker) -> int:
    """Rank a failure from 0 (likely the cause) to 2, because an agent's order does not show the cause."""
    if is_secondary_failure(worker) or worker.exitcode == -signal.SIGTERM:
        return 2
    return 0 if worker.exitcode is not None and worker.exitcode < 0 else 1


def describe_worker(worker: Worker) -> str:
    """Describe how a worker failed: the exception in its error file, or else its exit code."""
    who = f"rank {worker.rank} (node {worker.node}, local_rank {worker.local_rank})"
    if worker.error:
        return f"{who} raised {worker.error}"
    text = f"{who} {describe_exit(worker.exitcode)}"
    last = [
        _ADDRESS_PATTERN.sub("a peer", line) for line in worker.errors.strip().splitlines()[-1:]
    ]
    return f"{text}; its error output ends with: {last[0]}" if last else f"{text}."


def describe_exit(exitcode: int | None) -> str:
    """Describe an exit code, or minus the number of a signal, in words."""
    if exitcode is None:
        return "was terminated with the job"
    if exitcode < 0:
        return f"was terminated by {signal.Signals(-exitcode).name}"
    return f"exited with code {exitcode}"
