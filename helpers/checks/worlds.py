"""Run programs on cases: many consecutive turns in one world, or one turn in a separate world.

The rank itself reports which case a recorded call belongs to, and an answer could change that report. So a
shared world counts only if every recorded call of every rank belongs to some turn (`run_turns`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from helpers.checks.case import Case, Measured
from helpers.checks.driver import TurnPlan, drive_cases
from helpers.checks.execution import Execution
from helpers.checks.exercise import Exercise
from helpers.checks.kinds import Kind
from helpers.checks.script_runs import make_script_run
from helpers.checks.stopwatch import TimingReplies
from helpers.ranks.cells import place_of
from helpers.ranks.connection import Servers
from helpers.ranks.launch_options import Caller, Options
from helpers.ranks.launcher import run_on_ranks
from helpers.ranks.run import Run
from helpers.trace.events import Place, Trace

MAX_EVENTS = 5_000
"""Limit of each rank's calls and spans in one world, because reading events takes time.

No answer needs a tenth of this number.
"""
# Processor time for a world that runs several turns. Beyond it, each case is tried in a separate world with a
# full budget.
_SHARED_WORLD_CPU_S = 4.0

_Timings = Sequence[Mapping[tuple[int, ...], Sequence[float]]]


class Flooded(Exception):
    """A rank made too many calls to read."""


@dataclass(frozen=True)
class Turn:
    """One call of a program. number: the case's position among those of its world size.

    The number alone determines which rank is late and which random numbers a rank draws, so a case is the
    same in every world.
    """

    case: Case
    number: int
    program: int = 0

    @property
    def may_share(self) -> bool:
        """Return whether other cases may run in its world: it has a group, and no special environment."""
        return self.case.init and self.case.env is None


@dataclass(frozen=True)
class Worlds:
    """Runs programs that answer one exercise.

    programs: sources, each of which defines `exercise.name`. place: a function that returns the place of a
    line. record_values: whether to record tensor values if a turn has a separate world.
    """

    exercise: Exercise
    programs: Sequence[str]
    place: Callable[[str, int, str], Place] = place_of
    connection: Servers | None = None
    record_values: bool = False

    def run_alone(self, turn: Turn, other_poison: bool = False) -> Execution:
        """Run one turn in a separate world. other_poison: see `adversarial_world`. Raise Flooded."""
        run, timings = self._run_world([turn], other_poison)
        if self.exercise.kind is Kind.SCRIPT:
            # the launched process only starts the script, so the values of the script's workers are judged
            # instead
            value = _read_report(run.values[0], 0, 1).returned if run.ok else None
            run = replace(run, values=[value])
            script = make_script_run(turn.case.world_size, turn.case.seconds, run, self.place)
            return Execution(turn.case, script, number=turn.number)
        if not run.ok:
            return Execution(turn.case, run, number=turn.number)
        return self._split_run([turn], run, timings)[0]

    def run_turns(self, turns: Sequence[Turn]) -> tuple[list[Execution], Run] | None:
        """Run turns of one world size in one world; return each turn's result, and the run of the world.

        Return None if the world failed, or if a recorded call belongs to no turn. Raise Flooded.
        """
        run, timings = self._run_world(turns)
        if not run.ok or not _covers_all_calls(run, len(turns)):
            return None
        return self._split_run(turns, run, timings), run

    def run_pair(self, first: Turn, second: Turn) -> tuple[Execution | None, Execution] | None:
        """Run two turns in one world; return both results, or only the second if the world failed.

        Return None if a recorded call belongs to neither turn. Raise Flooded.
        """
        turns = [first, second]
        run, timings = self._run_world(turns)
        if not run.ok:
            return None, Execution(second.case, run, number=second.number)
        if not _covers_all_calls(run, len(turns)):
            return None
        first_part, second_part = self._split_run(turns, run, timings)
        return first_part, second_part

    def _run_world(self, turns: Sequence[Turn], other_poison: bool = False) -> tuple[Run, _Timings]:
        """Run turns one after another in one world; also return the timings requested in each turn."""
        exercise, first = self.exercise, turns[0].case
        # a script's ranks are processes started by the only rank here
        size = 1 if exercise.kind is Kind.SCRIPT else first.world_size
        replies = TimingReplies([turn.case.timings and turn.case.timings() for turn in turns])
        run = run_on_ranks(
            drive_cases,
            Options(
                size,
                env=first.env,
                init=first.init and not exercise.kind.is_alone,
                timeout=_SHARED_WORLD_CPU_S if len(turns) > 1 else first.seconds,
                record_values=self.record_values and len(turns) == 1,
            ),
            args=(
                TurnPlan(
                    list(self.programs),
                    [turn.program for turn in turns],
                    [turn.number for turn in turns],
                    exercise.name,
                    exercise.kind,
                    exercise.driver,
                    other_poison,
                    # graders pass their servers, and instructors read the recorded values
                    report_replaced=self.connection is not None,
                ),
            ),
            per_rank=[(_inputs_of_rank(turns, rank),) for rank in range(size)],
            caller=Caller(self.place, replies if exercise.kind is Kind.MEASUREMENT else None),
            connection=self.connection,
        )
        # check this before reading the trace, because rules and advice take longer for long traces
        if len(run.trace) > MAX_EVENTS * size:
            raise Flooded
        return run, replies.timings

    def _split_run(self, turns: Sequence[Turn], run: Run, timings: _Timings) -> list[Execution]:
        """Split the run of a world into its turns. A rank lying about its turns harms only its own answer."""
        parts = []
        is_alone = len(turns) == 1
        for index, turn in enumerate(turns):
            # a lying rank can move only its own calls to the wrong case
            reported = [_read_report(value, index, len(turns)) for value in run.values]
            # if a turn has a separate world, attribute all calls to it, even if the rank reports otherwise
            spans = [(turn_report.first, turn_report.last) for turn_report in reported]
            trace = run.trace if is_alone else run.trace.between(spans)
            values = [turn_report.returned for turn_report in reported]
            if turn.case.timings is not None:
                values = [Measured(returned, timings[index]) for returned in values]
            part = replace(run, values=values, trace=trace)
            changed = (
                [turn_report.changed for turn_report in reported]
                if self.exercise.keeps_input
                else ()
            )
            parts.append(Execution(turn.case, part, changed, turn.number))
        return parts


def _inputs_of_rank(turns: Sequence[Turn], rank: int) -> list[tuple[Any, ...]]:
    """Return a rank's inputs for each turn. If a case has several turns, each program gets a copy.

    Otherwise the programs would share one object on the rank, which a program may change.
    """
    has_many_turns = len({id(turn.case) for turn in turns}) < len(turns)
    given = [turn.case.given[rank] for turn in turns]
    return [copy.deepcopy(inputs) for inputs in given] if has_many_turns else given


class _TurnReport(NamedTuple):
    """A rank's report on one turn. first, last: the numbers of its calls, from `drive_cases`."""

    returned: Any = None
    changed: Sequence[str] = ()
    first: int = 0
    last: int = 0


def _read_report(value: Any, index: int, count: int) -> _TurnReport:
    """Read a rank's report on turn k; empty if it does not have the form of `drive_cases`."""
    # a hostile rank may report anything, so only this form is accepted
    if isinstance(value, list) and len(value) == count:
        part = value[index]
        if isinstance(part, list) and len(part) == 4 and isinstance(part[1], list):
            returned, changed, first, last = part
            if type(first) is int and type(last) is int:
                return _TurnReport(returned, [str(name)[:80] for name in changed[:20]], first, last)
    return _TurnReport()


def _covers_all_calls(run: Run, count: int) -> bool:
    """Return whether every recorded call of every rank belongs to one of the rank's reported turns."""
    ends = []
    for value in run.values:
        end = 0
        for report in (_read_report(value, index, count) for index in range(count)):
            # there must be no gap between turns, because a call in a gap would belong to no case
            if report.first != end or report.last < end:
                return False
            end = report.last
        ends.append(end)
    return all(event.seq < ends[event.rank] for event in run.trace)


def is_clean(trace: Trace) -> bool:
    """Return whether a turn left nothing behind: all calls ended, and all messages were received."""
    if any(event.end_ns is None for event in trace.calls):
        return False
    if any(message.recv is None for message in trace.messages()):
        return False
    # if a message of another turn was paired with a recv of this one, the numbers differ
    sent = sum(event.op == "send" for event in trace)
    received = sum(event.op == "recv" for event in trace)
    return sent == received and all(collective.complete for collective in trace.collectives())
