"""6.6 The first error (25 min, ●●●●○, further)

- Sort the lines by rank first. For each rank: what is its last line that ends with "done", and what is the
  first ERROR after it? That one is its failure: the rank survived every earlier error, and later ones are
  cleanup.
- Leave out failures that follow from another rank's end. Return the first of the others in time: measure
  each one's time from its rank's last "done", which is the same moment on all ranks. If none remains, read
  what the agent logged.
- own = [line for line in log if line[1] == rank]; last = max(i for i, line in enumerate(own) if
  line[3].endswith("done")); errors = [i for i in range(last, len(own)) if own[i][2] == "ERROR"]. The
  failure is own[errors[0]], its moment the last time that is not None in own[: errors[0] + 1], minus
  own[last][0]. Without such a failure: the rank without errors for which the agent says "rank R ended by
  SIGNAL", and not "sending SIGNAL to rank R"; else the rank without errors.
"""

from collections.abc import Callable, Sequence

from helpers.checks.author import *

RANKS, AGENT = 8, -1
CONSEQUENCE_WORDS = ("closed by peer", "reset by peer", "timed out", "watchdog", "SIGTERM")
Line = tuple[float | None, int, str, str]
Answer = tuple[int, str]


def case(draw: Draw) -> Case:
    job = Job(draw)
    log, right = job.write_log(), (job.culprit, job.cause)
    found = find_first_failure(log)
    assert found == right, (found, right, log)
    return Case(
        f"{len(log)} lines of 8 ranks, {job.cause}, {job.second_event or 'one failure'}",
        [(log,)],
        right=right,
        shown="by one clock: " + "; ".join(job.shown_lines),
    )


# --- reading a log ------------------------------------------------------------------------------------


def find_first_failure(log: Sequence[Line]) -> Answer:
    """Return the first failure of a log."""
    said = {text for _, rank, _, text in log if rank == AGENT}
    own: list[tuple[float, int, str]] = []
    without = []
    for rank in range(RANKS):
        lines = [line for line in log if line[1] == rank]
        last = max(i for i, line in enumerate(lines) if line[3].endswith("done"))
        first = next((i for i in range(last, len(lines)) if lines[i][2] == "ERROR"), None)
        if first is None:
            without.append(rank)
        elif not any(word in lines[first][3] for word in CONSEQUENCE_WORDS):
            known = [line[0] for line in lines[: first + 1] if line[0] is not None]
            cause = "memory" if "memory" in lines[first][3] else "exception"
            own.append((known[-1] - (lines[last][0] or 0.0), rank, cause))
    if own:
        return min(own)[1:]
    for text in said:
        _, number, *rest = text.split()
        was_silent = rest[:2] == ["ended", "by"] and int(number) in without
        if was_silent and f"sending {rest[2]} to rank {number}" not in said:
            return int(number), "killed"
    return without[0], "stuck"


# --- drawing a log ------------------------------------------------------------------------------------

OWN_FAILURES = {
    "exception": (
        "ValueError: label 12 is not a digit",
        "FileNotFoundError: shard-0017.bin",
        "RuntimeError: shapes (64, 10) and (32, 10) do not match",
        "IndexError: index 50257 is out of range",
    ),
    "memory": (
        "OutOfMemoryError: CUDA out of memory, 2.0 GiB were asked for",
        "RuntimeError: DefaultCPUAllocator: can't allocate memory",
    ),
}
CONSEQUENCES = (
    "RuntimeError: Connection closed by peer",
    "RuntimeError: Read error: Connection reset by peer",
    "RuntimeError: wait timed out after 10000 ms",
    "NCCL watchdog: collective 812 has not ended",
    "received SIGTERM, leaving",
)
SURVIVED_ERRORS = (
    "OutOfMemoryError: CUDA out of memory, again with half the batch",
    "FileNotFoundError: no cache, reading the original",
    "storage: Connection reset by peer, trying again",
)
CLEANUP_ERRORS = (
    "ValueError: I/O operation on closed file",
    "RuntimeError: can't release pinned memory",
)
SCENARIOS = (
    ("exception", "a later failure"),
    ("memory", "a later failure"),
    ("exception", "an abort"),
    ("memory", "an abort"),
    ("exception", ""),
    ("killed", "an abort"),
    ("killed", "all speak"),
    ("killed", "a kill by the agent"),
    ("killed", ""),
    ("stuck", "a kill by the agent"),
    ("stuck", ""),
    ("stuck", "leaves by itself"),
    ("exception", "a later failure"),
)
"""Pairs: why the first rank fails, and which misleading event the log shows in addition."""


class Job:
    """A drawn job of 8 ranks: its failure, and the log that the ranks and the agent write."""

    def __init__(self, draw: Draw) -> None:
        self.rng, rng = draw.rng, draw.rng
        self.cause, self.second_event = draw.of(*SCENARIOS)
        # use a deck for each cause, so that each rank fails in each way
        decks: dict[str, Callable[[], int]] = {
            "own": lambda: draw.of(*range(RANKS)),
            "killed": lambda: draw.of(*range(RANKS)),
            "stuck": lambda: draw.of(*range(RANKS)),
        }
        self.culprit = decks["own" if self.cause in OWN_FAILURES else self.cause]()
        others = [rank for rank in range(RANKS) if rank != self.culprit]
        # A reader finds the lines of these ranks before those of the culprit, or after them
        ends = others[0], others[-1]
        spoken = (self.cause, self.second_event) == ("killed", "an abort")
        self.aborted_rank = draw.of(*ends) if spoken else rng.choice(ends)
        self.later_rank, self.ignoring_rank = rng.sample(
            [rank for rank in others if rank != self.aborted_rank], 2
        )
        if self.cause == "stuck":
            self.ignoring_rank = self.culprit
        self.lacks_time = draw.of(True, False)
        self.survivor = draw.of(self.culprit, self.later_rank, (self.culprit + 1) % RANKS)
        self.survived_error = draw.of(*SURVIVED_ERRORS)
        self.offsets = [rng.uniform(-300, 300) for _ in range(RANKS)]
        self.delays = [rng.uniform(0, 2.5) for _ in range(RANKS)]
        if self.second_event == "a later failure":
            self._mislead(draw.of("clock", "place", "no time"))
        self.arrivals: list[tuple[float, Line]] = []
        self.shown_lines: list[str] = []  # the lines to show for a case that the answer gets wrong
        self.signaled_ranks: set[int] = set()  # ranks that the agent sends a signal to

    def _mislead(self, disguise: str) -> None:
        """Make the later failure look like the first. disguise: "clock", "place" or "no time"."""
        first, later = self.culprit, self.later_rank
        ahead, behind = self.rng.uniform(5, 200), self.rng.uniform(0.7, 1.5)
        self.offsets[first] = self.offsets[later] + (ahead if disguise == "clock" else -ahead)
        self.delays[first] = self.delays[later] + (behind if disguise == "place" else 0.0)
        self.lacks_time = disguise == "no time"

    def write_line(self, at_s: float, rank: int, level: str, text: str, timed: bool = True) -> None:
        """Write a line of a rank or of the agent; it arrives later."""
        own = at_s + (7.0 if rank == AGENT else self.offsets[rank])
        arrives = at_s + (0.0 if rank == AGENT else self.delays[rank])
        self.arrivals.append((arrives, (round(own, 3) if timed else None, rank, level, text)))

    def write_failure(self, at_s: float, rank: int, text: str, timed: bool = True) -> None:
        """Write a rank's failure, and perhaps an error of its cleanup."""
        if not timed:
            self.write_line(at_s - 0.001, rank, "INFO", "reading a batch")
            self._write_between(at_s, rank)
        self.write_line(at_s, rank, "ERROR", text, timed)
        self.shown_lines.append(
            f"rank {rank} at {at_s:.2f} s{'' if timed else ' (no time)'}: {text[:28]}"
        )
        if not timed or self.rng.random() < 0.4:
            self.write_line(
                at_s + (0.05 if timed else 1.5), rank, "ERROR", self.rng.choice(CLEANUP_ERRORS)
            )

    def _write_between(self, at_s: float, rank: int) -> None:
        """Write another rank's line in between, with a time that would misplace the failure of this rank."""
        others = [each for each in range(RANKS) if each != rank]
        worst = max if rank == self.culprit else min
        other = worst(others, key=lambda each: self.offsets[each])
        line = (round(at_s + self.offsets[other], 3), other, "INFO", "reading a batch")
        self.arrivals.append((at_s - 0.0005 + self.delays[rank], line))

    def write_log(self) -> list[Line]:
        rng, begin, steps = self.rng, self.rng.randint(0, 400), self.rng.randint(3, 6)
        for step in range(steps):
            for rank in range(RANKS):
                if step >= rng.choice((0, 0, 1)):  # the oldest line of a rank may be lost
                    self.write_line(
                        2.0 * step + rng.uniform(0, 0.02), rank, "INFO", f"step {begin + step} done"
                    )
        self.write_line(
            2.0 * rng.randint(0, steps - 2) + 0.7, self.survivor, "ERROR", self.survived_error
        )
        now = 2.0 * (steps - 1) + rng.uniform(0.6, 1.2)
        self.write_line(now - 0.3, (self.culprit + 2) % RANKS, "WARNING", "the loader is slow")
        if self.cause in OWN_FAILURES:
            self.write_failure(
                now, self.culprit, rng.choice(OWN_FAILURES[self.cause]), not self.lacks_time
            )
        victims = [rank for rank in range(RANKS) if rank != self.culprit]
        if self.second_event == "a later failure":
            victims.remove(self.later_rank)
            other = "memory" if self.cause == "exception" else "exception"
            timed = self.lacks_time or rng.random() < 0.5
            self.write_failure(
                now + rng.uniform(0.2, 0.6), self.later_rank, rng.choice(OWN_FAILURES[other]), timed
            )
        quiet = []
        for rank in victims:
            if (
                self.cause != "stuck"
                and self.second_event != "all speak"
                and (
                    rank == self.ignoring_rank
                    or (rng.random() < 0.25 and rank != self.aborted_rank)
                )
            ):
                quiet.append(rank)  # the agent ended the rank before it wrote a line
                continue
            if (
                rank == self.aborted_rank
                and self.second_event == "an abort"
                and self.cause in OWN_FAILURES
            ):
                continue  # gloo aborted the rank
            wait = 10.0 if self.cause == "stuck" else 0.0
            text = rng.choice(CONSEQUENCES[2:4] if self.cause == "stuck" else CONSEQUENCES)
            self.write_failure(now + wait + rng.uniform(0.02, 0.9), rank, text)
        self._write_exits(now + (14.0 if self.cause == "stuck" else 3.0), quiet)
        # the sort is stable: a rank's lines stay in their order
        self.arrivals.sort(key=lambda said: said[0])
        return [line for _, line in self.arrivals]

    def _write_exits(self, now: float, quiet: Sequence[int]) -> None:
        """Write how the agent ends the remaining processes, and how each process ended, in any order."""
        ends = dict.fromkeys(range(RANKS), "left with exit code 1")
        for rank in [*quiet, *([self.culprit] if self.cause == "stuck" else [])]:
            self.signaled_ranks.add(rank)
            self.write_line(now, AGENT, "INFO", f"sending SIGTERM to rank {rank}")
            ends[rank] = "ended by SIGTERM"
            if self.second_event == "a kill by the agent" and rank == self.ignoring_rank:
                self.write_line(now + 30.0, AGENT, "INFO", f"sending SIGKILL to rank {rank}")
                ends[rank] = "ended by SIGKILL"
        if self.second_event == "an abort":
            ends[self.aborted_rank] = "ended by SIGABRT"
        if (
            self.second_event == "leaves by itself"
        ):  # the rank handles the agent's SIGTERM and exits
            ends[self.culprit] = "left with exit code 1"
        if self.cause == "killed":
            signals = {"a kill by the agent": "SIGKILL", "": "SIGTERM", "all speak": "SIGKILL"}
            by = signals.get(self.second_event) or self.rng.choice(("SIGSEGV", "SIGBUS"))
            ends[self.culprit] = f"ended by {by}"
        if (
            self.second_event == "all speak"
        ):  # the signal came too late, because the rank had exited
            self.write_line(now, AGENT, "INFO", f"sending SIGTERM to rank {self.culprit}")
        for rank in self.rng.sample(range(RANKS), RANKS):
            self.write_line(now + 31.0, AGENT, "ERROR", f"rank {rank} {ends[rank]}")
            if ends[rank].startswith("ended"):
                self.shown_lines.append(
                    f"rank {rank} {ends[rank]}{', sent by the agent' * (rank in self.signaled_ranks)}"
                )


EXERCISE = Exercise(case, kind=Kind.JUDGEMENT, sizes=(1,), count=48)
