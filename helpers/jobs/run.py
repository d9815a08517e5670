"""The result of a job, as frozen data for views and checks, and the errors of a failed job."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass

from helpers.ranks.failures import RankError, is_consequence
from helpers.ranks.run import PlainError

# An address in a message of gloo. Its port differs in each run and does not help a reader.
_ADDRESS_PATTERN = re.compile(r"\[?127\.0\.0\.1\]?:\d+[$\d]*")


@dataclass(frozen=True)
class Worker:
    """One worker process of one round: its ranks, its output, and its failure, if any.

    Attributes:
        exitcode: None if the agent reported no exit code, because the worker succeeded or was terminated
            after a peer's failure.
        error: The message of its error file, written under `@record`.
        traceback: The traceback stored next to this message.
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
    """One agent's record of a rendezvous: the started workers, the time, and the ending of the round.

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
    """One torchrun process: its node, its command, its exit, its output without workers, and its rounds.

    exitcode: None if the process had to be terminated; the negative signal number if a signal killed the
    process.
    """

    node: int
    command: tuple[str, ...]
    exitcode: int | None
    words: str
    rounds: tuple[Round, ...]


@dataclass(frozen=True)
class TorchrunRun:
    """The result of one job, with all its agents.

    agents: in the order of their start. failure: the job's failure, or None.
    """

    agents: tuple[Agent, ...]
    failure: TorchrunFailed | None = None
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return self.failure is None

    @property
    def rounds(self) -> tuple[Round, ...]:
        """Every rendezvous of every agent, in the order of their beginnings."""
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
    """A job under torchrun failed. `run` holds the results up to the failure."""

    run: TorchrunRun | None = None


@dataclass(frozen=True)
class MpiRun:
    """The result of one mpiexec.

    Attributes:
        command: The command in a form that a reader would type.
        output: Each rank's text on stdout.
        errors: Each rank's text on stderr.
        exitcode: The exit code of mpiexec; None if it had to be terminated.
        failure: The job's failure, or None.
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
    """A job under mpiexec failed. `run` holds the results up to the failure."""

    run: MpiRun | None = None


def find_failure(agents: tuple[Agent, ...], timeout_text: str) -> TorchrunFailed | None:
    """Return the error of a failed job: the first failing worker, and its failure.

    timeout_text: a description of the timeout, "" if there was none.
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
    """Return whether a worker's last lines show that it failed only because a peer had exited."""
    last = worker.error or "\n".join(worker.errors.splitlines()[-2:])
    return is_consequence(RankError(worker.rank, "", last))


def _cause_rank(worker: Worker) -> int:
    """Rate a failure from 0 (likely the cause) to 2, because the agent's order does not show the cause."""
    if is_secondary_failure(worker) or worker.exitcode == -signal.SIGTERM:
        return 2
    return 0 if worker.exitcode is not None and worker.exitcode < 0 else 1


def describe_worker(worker: Worker) -> str:
    """Describe a worker's failure: the exception in its error file, or else its exit code."""
    who = f"rank {worker.rank} (node {worker.node}, local_rank {worker.local_rank})"
    if worker.error:
        return f"{who} raised {worker.error}"
    text = f"{who} {describe_exit(worker.exitcode)}"
    last = [
        _ADDRESS_PATTERN.sub("a peer", line) for line in worker.errors.strip().splitlines()[-1:]
    ]
    return f"{text}; its error output ends with: {last[0]}" if last else f"{text}."


def describe_exit(exitcode: int | None) -> str:
    """Describe an exit code, or the negative number of a signal, in words."""
    if exitcode is None:
        return "was terminated with the job"
    if exitcode < 0:
        return f"was terminated by {signal.Signals(-exitcode).name}"
    return f"exited with code {exitcode}"
