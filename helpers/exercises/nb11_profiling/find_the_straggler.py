"""11.3 Find the straggler (20 min, ●●●●○)

- Which rank waits least in `all_reduce`: the one that arrives first, or the one that arrives last?
- First find the rank: its `all_reduce` spans add up to the smallest sum. Then, for each phase, compare its
  time without waiting with the median of all ranks' times.
- own[rank][phase] = sum of (end - start - the part covered by all_reduce spans). rank =
  min(range(len(traces)), key=time in all_reduce). phase = max(own[rank], key=lambda p: own[rank][p] -
  median(other.get(p, 0) for other in own)).
"""

from collections import defaultdict
from statistics import median
from typing import Any

from helpers.checks.author import *
from helpers.exercises.nb11_profiling.shared import Span

PHASES = ("data", "forward", "backward", "optimizer")
PHASES_IN_ORDER = {phase: place for place, phase in enumerate((*PHASES, "save"))}
PHASE_MS = (2.0, 6.0, 14.0, 3.0)
"""Milliseconds of each phase on a normal rank."""
KINDS = (
    "one phase is long",
    "its longest phase is not the cause",
    "another rank makes up for it",
    "another rank has one long step",
    "it is slow in some steps",
    "it has a phase that others have not",
    "another phase is long in one step",
    "others come last in single steps",
    "waiting within data",
    "waiting across two phases",
)
PHASE_ORDER = (
    ("data", 1.0),
    ("forward", 1.0),
    ("backward", 0.5),
    ("all_reduce", 0.0),
    ("backward", 0.5),
    ("all_reduce", 0.0),
    ("optimizer", 1.0),
    ("save", 1.0),
)
"""A step as parts of phases, each with its share of the phase.

At all_reduce, all ranks synchronize.
"""
ACROSS_PHASES_ORDER = (*PHASE_ORDER[:3], *PHASE_ORDER[4:])
WITHIN_DATA_ORDER = (
    ("data", 0.5),
    ("all_reduce", 0.0),
    ("data", 0.5),
    *PHASE_ORDER[1:5],
    *PHASE_ORDER[6:],
)
PHASE_ORDERS = {
    "waiting within data": WITHIN_DATA_ORDER,
    "waiting across two phases": ACROSS_PHASES_ORDER,
}
CLEAR_MS, CLEAR_PHASE_MS = 4.0, 2.0
"""The minimum milliseconds, over all steps, by which the straggler and its phase differ from the others."""

Times = dict[str, float]


def case(draw: Draw) -> Case:
    kind = draw.of(*KINDS)
    while True:
        job = Job(draw, kind)
        if job.is_clear():
            break
    traces, rank, phase = job.traces, job.straggler, job.phase
    return Case(
        f"{len(traces)} ranks, {job.steps} steps: {job.kind}",
        [(traces,)],
        right=(rank, phase),
        shown=summarize(traces),
    )


def summarize(traces: list[list[Span]]) -> str:
    """Return a summary of each rank's waiting and its phases without waiting, instead of its many spans."""
    ranks = []
    for rank, trace in enumerate(traces):
        phases = sorted(work_ms_by_phase(trace).items(), key=lambda item: PHASES_IN_ORDER[item[0]])
        work = ", ".join(f"{phase} {ms:.0f}" for phase, ms in phases)
        ranks.append(f"rank {rank} {waiting_ms(trace):.0f} ({work})")
    return f"ms in all_reduce over all steps (phases without waiting): {'; '.join(ranks)}"


class Job:
    """A drawn job: each rank's work in each step, and the ranks' traces.

    kind: the misleading pattern. The straggler is slow in one phase and often, a little less, in
    `second_phase`.
    """

    def __init__(self, draw: Draw, kind: str) -> None:
        rng = draw.rng
        self.kind = kind
        self.ranks, self.steps = draw.of(8, 5, 6), draw.whole(4, 7)
        self.straggler, self.decoy, self.second_decoy = rng.sample(range(self.ranks), 3)
        self.phase = {
            "another rank makes up for it": draw.of("data", "forward", "optimizer"),
            "its longest phase is not the cause": draw.of("data", "forward", "optimizer"),
            "others come last in single steps": draw.of("data", "forward", "optimizer"),
            "waiting within data": "data",
            "waiting across two phases": "optimizer",
            "it has a phase that others have not": "save",
        }.get(self.kind) or draw.of(*PHASES)
        self.second_phase = "forward" if self.phase == "data" else "data"
        self.work = [
            [self._draw_step(rng, rank, step) for step in range(self.steps)]
            for rank in range(self.ranks)
        ]
        self.clock_offsets = [rng.uniform(-400, 400) for _ in range(self.ranks)]
        self.traces = self._simulate_traces(rng)

    def _draw_step(self, rng: Any, rank: int, step: int) -> Times:
        times = {p: ms * rng.uniform(0.97, 1.03) for p, ms in zip(PHASES, PHASE_MS, strict=True)}
        more = {
            self.straggler: self._straggler_delay,
            self.decoy: self._decoy_delay,
            self.second_decoy: self._second_decoy_delay,
        }
        if rank in more:
            for phase, ms in more[rank](step).items():
                times[phase] = times.get(phase, 0.0) + ms
        return times

    def _straggler_delay(self, step: int) -> Times:
        """Return the straggler's additional milliseconds in a step, by phase."""
        main, second = self.phase, self.second_phase
        if self.kind == "it is slow in some steps":
            return {main: 30.0 if step % 3 == 1 else 0.0}
        if self.kind == "it has a phase that others have not":
            return {main: 24.0 if step % 2 else 0.0}
        less = {
            "its longest phase is not the cause": 2.5,
            "one phase is long": 5.5,
            "another rank makes up for it": 6.5,
            "another phase is long in one step": 20.0 if step == 1 else 0.0,
            "waiting within data": 5.5,
            "waiting across two phases": 6.0,
        }
        return {main: 7.5, second: less.get(self.kind, 0.0)}

    def _decoy_delay(self, step: int) -> Times:
        """Return the additional milliseconds of a rank that is not the straggler, but seems to be."""
        if self.kind == "another rank makes up for it":
            return {self.phase: 12.0, "backward": -12.0}
        if self.kind == "another rank has one long step":
            return {self.second_phase: 19.0 if step == 2 else 0.0}
        if self.kind == "it is slow in some steps":
            return {"forward": 1.5}
        if self.kind == "others come last in single steps":
            return {"forward": 0.0 if step % 2 else 10.5}
        return {}

    def _second_decoy_delay(self, step: int) -> Times:
        if self.kind == "others come last in single steps":
            return {"forward": 10.5 if step % 2 else 0.0}
        return {}

    def _simulate_traces(self, rng: Any) -> list[list[Span]]:
        """Simulate the ranks; each all_reduce ends at the same time on all of them."""
        now, traces = list(self.clock_offsets), [[] for _ in range(self.ranks)]  # type: list[float], list[list[Span]]
        for step in range(self.steps):
            begun: list[Times] = [{} for _ in now]
            ended: list[Times] = [{} for _ in now]
            last = ""
            for phase, share in PHASE_ORDERS.get(self.kind, PHASE_ORDER):
                came = max(t - zero for t, zero in zip(now, self.clock_offsets, strict=True))
                together = came + rng.uniform(1, 2)
                for r, zero in enumerate(self.clock_offsets):
                    if phase == "all_reduce":
                        end = zero + together
                        traces[r].append((phase, now[r], end))
                        # the phase containing the span ends after the span or, in one kind of job, in its
                        # middle
                        across = self.kind == "waiting across two phases"
                        ended[r][last] = (now[r] + end) / 2 if across else end
                        now[r] = end
                    elif self.work[r][step].get(phase):
                        before = ended[r].get(last, now[r]) if phase == "optimizer" else now[r]
                        begun[r].setdefault(phase, before)
                        now[r] += share * self.work[r][step][phase]
                        ended[r][phase] = now[r]
                last = phase if phase != "all_reduce" else last
            for r, phases in enumerate(begun):
                traces[r] += [(phase, start, ended[r][phase]) for phase, start in phases.items()]
        for trace in traces:
            rng.shuffle(trace)
        return [[(p, round(s, 3), round(e, 3)) for p, s, e in trace] for trace in traces]

    def is_clear(self) -> bool:
        """Return whether one rank clearly waits least, and is late in one phase.

        Both must also hold when comparing the ranks' work instead of their waiting, and when comparing a
        phase with the median of the other ranks.
        """
        work = [work_ms_by_phase(trace) for trace in self.traces]
        waits = sorted((waiting_ms(trace), r) for r, trace in enumerate(self.traces))
        by_work = max(range(self.ranks), key=lambda r: sum(work[r].values()))
        others = [times for r, times in enumerate(work) if r != self.straggler]
        for among in (work, others):
            mine = work[self.straggler]
            beyond = sorted((mine[p] - median(t.get(p, 0.0) for t in among), p) for p in mine)
            if beyond[-1][1] != self.phase or beyond[-1][0] - beyond[-2][0] < CLEAR_PHASE_MS:
                return False
        return by_work == waits[0][1] == self.straggler and waits[1][0] - waits[0][0] > CLEAR_MS


def waiting_ms(trace: list[Span]) -> float:
    return sum(end - start for phase, start, end in trace if phase == "all_reduce")


def work_ms_by_phase(trace: list[Span]) -> Times:
    """Return the time of each phase over all steps, without waiting."""
    waits = [(start, end) for phase, start, end in trace if phase == "all_reduce"]
    times: Times = defaultdict(float)
    for phase, start, end in trace:
        if phase != "all_reduce":
            within = sum(max(0.0, min(end, e) - max(start, s)) for s, e in waits)
            times[phase] += end - start - within
    return dict(times)


EXERCISE = Exercise(case, kind=Kind.LOCAL, sizes=(1,))
