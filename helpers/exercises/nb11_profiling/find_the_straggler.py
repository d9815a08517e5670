"""11.3 Find the straggler (20 min, ●●●●○)

- Which rank waits least in `all_reduce`: the one that comes first, or the one that comes last?
- First the rank: the one whose `all_reduce` spans add up to least. Then, for each phase, compare its time
  without waiting with the median of all ranks' times.
- own[rank][phase] = sum of (end - start - what all_reduce spans cover of it). rank =
  min(range(len(traces)), key=time in all_reduce). phase = max(own[rank], key=lambda p: own[rank][p] -
  median(other.get(p, 0) for other in own)).
"""

from collections import defaultdict
from statistics import mean, median
from typing import Any

from helpers.checks.author import *
from helpers.exercises.nb11_profiling.shared import Span

PHASES = ("data", "forward", "backward", "optimizer")
WAY = (2.0, 6.0, 14.0, 3.0)
"""How many ms a phase takes where nothing is wrong."""

Times = dict[str, float]


def case(draw: Draw) -> Case:
    while True:
        job = Job(draw)
        if job.is_clear():
            break
    traces, rank, phase = job.traces, job.straggler, job.phase
    work = [own(trace) for trace in traces]
    by_wait = sorted(range(len(traces)), key=lambda r: waited(traces[r]))
    waits = [own(trace, waiting=True) for trace in traces]
    by_ratio = [(rank, excess(work, rank, ratio=True, new=new)) for new in (1.0, float("inf"))]
    return Case(
        f"{len(traces)} ranks, {job.steps} steps, {job.kind}",
        [(traces,)],
        right=(rank, phase),
        mistakes=[
            Mistake(
                lambda got, _: pair(got) == (None, None), "Return two things: a rank, and a phase."
            ),
            Mistake(
                lambda got, _: pair(got)[1] == "all_reduce",
                "In `all_reduce` a rank waits for others. Name the phase that makes one come late.",
            ),
            Mistake(lambda got, _: pair(got)[0] == by_wait[-1], WAITER),
            Mistake((rank, excess(waits, rank)), WAITS),
            Mistake(largest_excess(work), RANK_FIRST),
            Mistake(largest_excess(waits), WAITS),
            Mistake((rank, max(work[rank], key=lambda p: work[rank][p])), LONGEST),
            Mistake(lambda got, _: pair(got) in by_ratio, RATIO),
            Mistake(lambda got, _: pair(got)[0] == job.last_by_clock(), CLOCKS),
            Mistake(lambda got, _: pair(got)[0] == job.most_often_last(), OFTEN),
            Mistake(lambda got, _: pair(got)[0] == rank, RIGHT_RANK),
        ],
    )


def pair(got: Any) -> tuple[Any, Any]:
    """Give what came back as (rank, phase), or (None, None)."""
    return tuple(got) if isinstance(got, (tuple, list)) and len(got) == 2 else (None, None)


WAITER = "This rank waits longest in `all_reduce`: it is there first. For whom does it wait?"
WAITS = (
    "A phase may contain `all_reduce`, and that is waiting: take it out before you compare phases."
)
RANK_FIRST = (
    "This rank takes longer in this phase than others, but makes up for it in another: nobody waits for it. "
    "First find the rank, then its phase."
)
LONGEST = (
    "The rank is right. Its longest phase may be as long on all ranks: compare each phase with the same one "
    "elsewhere."
)
RATIO = "The rank is right. Milliseconds make it late, not a ratio: a short phase may double and cost little."
CLOCKS = (
    "Each clock has its own zero: a moment of one rank says nothing beside a moment of another. Compare "
    "lengths, or set the clocks by a moment that all ranks share: the end of a collective."
)
OFTEN = "This rank comes last most often, but by little. Add up over all steps for how long others wait."
RIGHT_RANK = (
    "The rank is right. For each phase, compare its time without waiting, over all steps, with the ranks' "
    "median of that time."
)


class Job:
    """A drawn job: each rank's work in each step, and the traces that its ranks write.

    kind: what else is to be seen. The straggler is slow in one phase: in all steps, or much in some.
    """

    def __init__(self, draw: Draw) -> None:
        rng = draw.rng
        self.ranks, self.steps = draw.of(8, 8, 8, 4, 5, 6), draw.whole(4, 7)
        self.kind = draw.of(
            "plain",
            "one makes up for it",
            "one hiccup",
            "slow at times",
            "a phase of its own",
            "longest phase",
        )
        places = rng.sample(range(self.ranks), 2)
        self.straggler, self.decoy = (
            (0, max(places)) if self.kind == "a phase of its own" else places
        )
        self.phase = draw.of(*PHASES)
        if self.kind == "a phase of its own":
            self.phase = "save"
        if self.kind == "longest phase":
            self.phase = draw.of("data", "forward", "optimizer")
        self.work = [
            [self._step(rng, rank, step) for step in range(self.steps)]
            for rank in range(self.ranks)
        ]
        self.zeros = [rng.uniform(-400, 400) for _ in range(self.ranks)]
        self.traces = self._traces(rng)

    def _step(self, rng: Any, rank: int, step: int) -> Times:
        times = {p: ms * rng.uniform(0.97, 1.03) for p, ms in zip(PHASES, WAY, strict=True)}
        if rank == self.straggler:
            if self.kind == "slow at times":
                times[self.phase] += 30.0 if step % 3 == 1 else 0.0
            elif self.kind == "a phase of its own":
                times["save"] = 24.0 if step % 2 else 0.0
            else:
                times[self.phase] += rng.uniform(6, 9)
                if self.kind == "plain" and self.phase != "data":
                    times["data"] += 2.5  # more than twice as long as elsewhere, and not the cause
        if rank == self.decoy:
            if self.kind == "one makes up for it":
                other = "data" if self.phase != "data" else "forward"
                times[other] += 11.0
                times["backward"] -= 11.0
            elif self.kind == "one hiccup" and step == 2:
                times[rng.choice(PHASES)] += 19.0
            elif self.kind == "slow at times":
                times["forward"] += 1.5
        return times

    def _traces(self, rng: Any) -> list[list[Span]]:
        """Let the ranks run: each step's all_reduce, in the middle of backward, ends on all at once."""
        now = list(self.zeros)
        begun = list(now)
        traces: list[list[Span]] = [[] for _ in range(self.ranks)]
        for step in range(self.steps):
            for part in (0.5, 1.0):
                for r in range(self.ranks):
                    times = self.work[r][step]
                    if part == 0.5:
                        for phase in ("data", "forward"):
                            traces[r].append((phase, now[r], now[r] + times[phase]))
                            now[r] += times[phase]
                        begun[r] = now[r]
                    now[r] += times["backward"] / 2
                common = max(now[r] - self.zeros[r] for r in range(self.ranks)) + rng.uniform(1, 2)
                for r in range(self.ranks):
                    end = self.zeros[r] + common
                    traces[r].append(("all_reduce", now[r], end))
                    now[r] = end
            for r in range(self.ranks):
                traces[r].append(("backward", begun[r], now[r]))
                for phase in ("optimizer", "save"):
                    if self.work[r][step].get(phase):
                        length = self.work[r][step][phase]
                        traces[r].append((phase, now[r], now[r] + length))
                        now[r] += length
        for trace in traces:
            rng.shuffle(trace)
        return [[(p, round(s, 3), round(e, 3)) for p, s, e in trace] for trace in traces]

    def is_clear(self) -> bool:
        """Tell whether every right way of reading these traces finds the same rank and phase, by far."""
        work = [own(trace) for trace in self.traces]
        by_wait = sorted(range(self.ranks), key=lambda r: waited(self.traces[r]))
        by_work = sorted(range(self.ranks), key=lambda r: -sum(work[r].values()))
        by_blame = sorted(range(self.ranks), key=lambda r: -self.blamed()[r])
        waits = [waited(self.traces[r]) for r in by_wait]
        blames = [self.blamed()[r] for r in by_blame]
        phases = {excess(work, self.straggler, against=how) for how in (median, mean)}
        return (
            {by_wait[0], by_work[0], by_blame[0]} == {self.straggler}
            and phases == {self.phase}
            and waits[1] - waits[0] > 4.0
            and blames[0] > 1.3 * blames[1]
        )

    def arrivals(self) -> list[list[float]]:
        """Give for each collective when each rank came, all clocks set by the end of the collective."""
        starts = [sorted((s, e) for p, s, e in t if p == "all_reduce") for t in self.traces]
        return [[s - e for s, e in at] for at in zip(*starts, strict=True)]

    def blamed(self) -> list[float]:
        """Give the ms that the others waited for each rank, on the median."""
        blame = [0.0] * self.ranks
        for came in self.arrivals():
            last = max(range(self.ranks), key=lambda r: came[r])
            blame[last] += came[last] - median(came)
        return blame

    def most_often_last(self) -> int:
        lasts = [max(range(self.ranks), key=lambda r: came[r]) for came in self.arrivals()]
        return max(range(self.ranks), key=lasts.count)

    def last_by_clock(self) -> int:
        """Give the rank that begins its collectives last if all clocks were one."""
        starts = [sum(s for p, s, _ in t if p == "all_reduce") for t in self.traces]
        return starts.index(max(starts))


def waited(trace: list[Span]) -> float:
    return sum(end - start for phase, start, end in trace if phase == "all_reduce")


def own(trace: list[Span], *, waiting: bool = False) -> Times:
    """Give the time of each phase in all steps, without what `all_reduce` covers of it."""
    waits = [] if waiting else [(s, e) for phase, s, e in trace if phase == "all_reduce"]
    times: Times = defaultdict(float)
    for phase, start, end in trace:
        if phase != "all_reduce":
            within = sum(max(0.0, min(end, e) - max(start, s)) for s, e in waits)
            times[phase] += end - start - within
    return times


def excess(
    times: list[Times], rank: int, *, against: Any = median, ratio: bool = False, new: float = 1.0
) -> str:
    """Name the phase in which a rank needs most beyond what ranks usually need.

    ratio: by its ratio to that, which is `new` for a phase that others do not have.
    """

    def more(phase: str) -> float:
        usual = against(other.get(phase, 0.0) for other in times)
        mine = times[rank].get(phase, 0.0)
        return float((mine / usual if usual else new) if ratio else mine - usual)

    return max(times[rank], key=more)


def largest_excess(times: list[Times]) -> tuple[int, str]:
    """Name the rank and phase with the largest excess of all."""
    return max(
        ((r, excess(times, r)) for r in range(len(times))),
        key=lambda at: times[at[0]][at[1]] - median(other.get(at[1], 0.0) for other in times),
    )


EXERCISE = Exercise(case, kind=Kind.LOCAL, sizes=(1,))
