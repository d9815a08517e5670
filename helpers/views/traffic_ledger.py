"""Draw the calls and bytes of one rank in each phase of a step, run by run.

    {name: Run} -> calls_by_phase -> traffic_ledger() -> Picture

Phases are the spans that a rank recorded ("forward", "backward"). Checks also count calls by phase.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from helpers.ranks.run import Run
from helpers.trace.events import Event, Trace
from helpers.views.palette import COLLECTIVE, FAINT, INK, RECV, SEND, Look
from helpers.views.picture import Picture, new_figure, trace_of
from helpers.views.plain import one_line, plural, short_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Calls = Mapping[str, Sequence[Event]]
"""The calls issued in each phase."""

_BAR, _GAP = 0.27, 0.2
_EMPTY_TEXT = "nothing"


def calls_by_phase(trace: Trace, rank: int) -> dict[str, list[Event]]:
    """Sort the calls of a rank by the innermost span around each of them, in the order of spans.

    Spans with the same name form one phase. Calls outside of all spans are left out.
    """
    spans = [event for event in trace.of(rank) if event.op == "span"]
    found: dict[str, list[Event]] = {span.call: [] for span in spans}
    for event in trace.of(rank):
        around = [s for s in spans if event.op != "span" and _is_running(s, event.start_ns)]
        if around:
            found[max(around, key=lambda s: s.start_ns).call].append(event)
    return found


def traffic_ledger(
    runs: Mapping[str, Run | Trace],
    *,
    rank: int = 0,
    phases: Sequence[str] = ("forward", "backward"),
    title: str | None = None,
) -> Picture:
    """Draw a bar for each run and phase: the bytes that `rank` passed to calls, with a part for each call.

    The bytes are those of the tensors passed to the calls. Receives pass no data and are left out.
    """
    traces = {one_line(name, 44): trace_of(run) for name, run in runs.items()}
    ledger = {
        name: _without_receives(calls_by_phase(trace, rank)) for name, trace in traces.items()
    }
    rows = [(name, phase) for name in ledger for phase in phases]
    figure = new_figure(9.2, max(1.1, len(rows) * _BAR + len(ledger) * _GAP + 0.85))
    axes = figure.add_subplot()
    places = []
    for index, (name, phase) in enumerate(rows):
        y = index * _BAR + (index // max(1, len(phases))) * _GAP
        _draw_bar(axes, ledger[name].get(phase, ()), traces[name], y)
        first = phase == phases[0]
        places.append((y, f"{name}   {phase}" if first else phase))
    by_host = any(trace.hosts for trace in traces.values())
    # leave room for the text behind the longest bar
    _frame(axes, places, (2.0 if by_host else 1.45) * max(1, _max_bytes(ledger, phases)))
    dark = " (dark: groups that span hosts)" if by_host else ""
    axes.set_xlabel(f"bytes that rank {rank} passes to calls{dark}", fontsize=9)
    if title:
        axes.set_title(one_line(title, 90), fontsize=10.5, loc="left", parse_math=False)
    return Picture(figure, _describe_ledger(ledger, traces, phases, rank))


def _is_running(span: Event, when_ns: int) -> bool:
    return span.start_ns <= when_ns and (span.end_ns is None or when_ns <= span.end_ns)


def _without_receives(calls: Calls) -> Calls:
    return {phase: [e for e in events if e.op != "recv"] for phase, events in calls.items()}


def _max_bytes(ledger: Mapping[str, Calls], phases: Sequence[str]) -> int:
    sums = [sum(e.nbytes for e in calls.get(p, ())) for calls in ledger.values() for p in phases]
    return max(sums, default=0)


def _draw_bar(axes: Axes, calls: Sequence[Event], trace: Trace, y: float) -> None:
    left = 0
    for call in calls:
        look = _call_look(call)
        axes.barh(
            y, call.nbytes, _BAR * 0.82, left,
            color=look.color if _is_between_hosts(call, trace) else look.tint,
            edgecolor=look.color, hatch=look.hatch, linewidth=1.1,
        )  # fmt: skip
        left += call.nbytes
    axes.annotate(
        _describe_calls(calls, trace), (left, y), (5, 0), textcoords="offset points",
        va="center", fontsize=8.5, color=INK if calls else FAINT, parse_math=False,
    )  # fmt: skip


def _is_between_hosts(call: Event, trace: Trace) -> bool:
    ends = call.group_ranks if call.is_collective else (call.rank, call.peer or 0)
    return trace.between_hosts(ends)


def _call_look(call: Event) -> Look:
    return SEND if call.op == "send" else RECV if call.op == "recv" else COLLECTIVE


def _frame(axes: Axes, places: Sequence[tuple[float, str]], width: float) -> None:
    axes.set_yticks([y for y, _ in places], [label for _, label in places], parse_math=False)
    bottom = places[-1][0] if places else 0.0
    axes.set_ylim(bottom + _BAR * 0.7, -_BAR * 0.7)
    axes.set_xlim(0, width)
    axes.xaxis.set_major_formatter(lambda value, _: short_bytes(value))
    axes.tick_params(axis="y", length=0)
    axes.tick_params(labelsize=8.5)
    axes.spines[["top", "right"]].set_visible(False)


def _describe_calls(calls: Sequence[Event], trace: Trace) -> str:
    counts = Counter(call.op for call in calls)
    total = sum(call.nbytes for call in calls)
    made = ", ".join(plural(count, op) for op, count in counts.items())
    if not made:
        return _EMPTY_TEXT
    crossing = sum(call.nbytes for call in calls if _is_between_hosts(call, trace))
    part = f", {short_bytes(crossing)} of it between hosts" if crossing else ""
    return f"{made}: {short_bytes(total)}{part}"


def _describe_ledger(
    ledger: Mapping[str, Calls], traces: Mapping[str, Trace], phases: Sequence[str], rank: int
) -> str:
    lines = [f"what rank {rank} passes to calls:"]
    for name, calls in ledger.items():
        parts = [
            f"{phase} {_describe_calls(calls.get(phase, ()), traces[name])}" for phase in phases
        ]
        lines.append(f"  {name}: {'; '.join(parts)}")
    return "\n".join(lines)
