"""Draw one lane for each rank, in rank order: its output, its return value, its failure.

While a launch is running, a notebook shows `lanes_live_html`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

from helpers.ranks.failures import (
    Deadlock,
    HostLost,
    RankDied,
    RankFailed,
    RankTimeout,
    describe_wait,
)
from helpers.ranks.run import FailedRun, RankFailure, Run, RunningRanks, StoppedRanks
from helpers.trace.events import Wait
from helpers.views.by_host import first_ranks
from helpers.views.html_boxes import GREY, RED, border_left, div, muted
from helpers.views.plain import clean, clip, code_to_html, one_line, plural, split_lines
from helpers.views.rank_endings import endings
from helpers.views.timeline import player_html
from helpers.views.values import short_value

_FAILURE_LINES = 60
_LIVE_LINES = 8
# The view is updated every 0.3 s; on a very busy machine, less often.
_UPDATE_TIMEOUT_S = 10


@dataclass(frozen=True, slots=True)
class Lane:
    """The output and the result of one rank.

    value: its return value as text, or None if it may not have returned. ending: its part in the
    failure. mark: a word for its part if the failure began with this rank.
    """

    rank: int
    lines: tuple[str, ...]
    value: str | None
    ending: str = ""
    mark: str = ""


def lanes_of(run: Run) -> tuple[Lane, ...]:
    """Return the lanes of a run, in rank order."""
    ended, marks = endings(run), _marks(run.failure)
    lanes = []
    for rank in run.trace.imagined or range(run.world_size):
        value = run.values[rank] if rank < len(run.values) else None
        printed = run.output[rank] if rank < len(run.output) else ""
        # After a failure, None may be the value of a rank that returned None or of a rank that never
        # returned.
        known = value is not None or run.failure is None
        shown = short_value(value) if known else None
        ending, mark = ended.get(rank, ""), marks.get(rank, "")
        lanes.append(Lane(rank, split_lines(printed), shown, ending, mark))
    return tuple(lanes)


def _marks(failure: RankFailure | None) -> dict[int, str]:
    """Return {rank: word} for the ranks on which the failure began, such as "died"."""
    if isinstance(failure, RankFailed):
        return {failure.rank: "failed"}
    if isinstance(failure, RankDied):
        return {failure.rank: "died"}
    if isinstance(failure, HostLost):
        return dict.fromkeys(failure.ranks, "lost")
    if isinstance(failure, Deadlock):
        guilty = failure.diagnosis.guilty
        word = "stuck" if len(guilty) == len(failure.waits) else "look here first"
        return dict.fromkeys(guilty, word)
    return {}


def lanes_failed_text(shown: FailedRun) -> str:
    """Write a run without its failure as text."""
    return lanes_text(shown.run, with_failure=False)


def lanes_failed_html(shown: FailedRun) -> str:
    """Draw a run without its failure."""
    return lanes_html(shown.run, with_failure=False)


def lanes_text(run: Run, *, with_failure: bool = True) -> str:
    """Write the lanes as text, which is reproducible if the ranks' output is reproducible."""
    lanes = lanes_of(run)
    if run.failure is None and all(_has_no_content(lane) for lane in lanes):
        return "\n".join([_no_output_text(len(lanes), run.hosts), *_notes(run)])
    width = len(str(max((lane.rank for lane in lanes), default=0)))
    texts = [_lane_text(lane, f"rank {lane.rank:>{width}}") for lane in lanes]
    parts = _under_hosts_text(texts, run.hosts)
    if run.failure is not None and with_failure:
        parts += [
            f"{type(run.failure).__name__}: {text}" if not index else text
            for index, text in enumerate(_failure_lines(run.failure))
        ]
    return "\n".join([*parts, *_notes(run)])


def _lane_text(lane: Lane, name: str) -> list[str]:
    lines = [f"{name} | {line}".rstrip() for line in lane.lines]
    if lane.value is not None and not (_returned_none(lane) and lines):
        lines.append(f"{name} → {lane.value}")
    return lines


def _has_no_content(lane: Lane) -> bool:
    return _returned_none(lane) and not lane.lines


def _returned_none(lane: Lane) -> bool:
    return lane.value == "None"


def _no_output_text(world_size: int, hosts: Sequence[str]) -> str:
    where = f" on {plural(len(set(hosts)), 'host')}" if hosts else ""
    return f"{plural(world_size, 'rank')}{where}: nothing printed, nothing returned"


def _notes(run: Run) -> list[str]:
    return [f"note: {one_line(note, 300)}" for note in run.notes]


def _failure_lines(failure: RankFailure) -> tuple[str, ...]:
    return split_lines(str(failure), max_lines=_FAILURE_LINES)


def lanes_html(run: Run, *, with_failure: bool = True) -> str:
    """Draw the lanes as HTML: the failure first, then one lane for each rank.

    If ranks were left waiting, a live page shows the run below the failure: the waits as a graph, and a
    player with each rank's last call. In this case, the lanes contain only the ranks' output.
    """
    lanes = lanes_of(run)
    notes = "".join(
        div(code_to_html(note), "opacity: 0.7; margin-top: 4px") for note in _notes(run)
    )
    if run.failure is None and all(_has_no_content(lane) for lane in lanes):
        return _box_html(muted(_no_output_text(len(lanes), run.hosts)) + notes)
    banner = _banner(run.failure) if run.failure is not None and with_failure else ""
    stuck = isinstance(run.failure, Deadlock | RankTimeout)
    ends = [_lane_html(replace(lane, lines=(), value=None)) for lane in lanes]
    player = player_html(run, unplayed=_stack_rows(ends, run.hosts)) if stuck else ""
    if player:
        lanes = tuple(replace(lane, ending="", mark="") for lane in lanes)
    told = not player or any(lane.lines or lane.value is not None for lane in lanes)
    rows = _stack_rows([_lane_html(lane) for lane in lanes], run.hosts) if told else ""
    return _box_html(banner + player + rows + notes)


def lanes_live_html(ranks: RunningRanks) -> str:
    """Draw a launch that is still running: each rank's state, latest output and current call."""
    now = {wait.rank: wait for wait in ranks.waits}
    lanes = [
        _live_lane(
            rank, state, ranks.output[rank] if rank < len(ranks.output) else "", now.get(rank)
        )
        for rank, state in enumerate(ranks.states)
    ]
    return _box_html(_replaceable_html(lanes_live_text(ranks)) + _stack_rows(lanes, ranks.hosts))


def lanes_live_text(ranks: RunningRanks) -> str:
    """Write the number of a launch's running ranks as text."""
    done = sum(state == "returned" for state in ranks.states)
    count = f", {done} done" if done else ""
    running = plural(len(ranks.states), "rank")
    if ranks.checked:
        return f"Checking {ranks.checked} for {ranks.seconds:.0f} s, now on {running}{count} …"
    return f"{running} running for {ranks.seconds:.0f} s{count} …"


def _replaceable_html(text: str) -> str:
    """Return HTML with text that the next update replaces. If there is none, it shows that updates stopped.

    The kernel may have been restarted, or the notebook saved and reopened. Without a kernel, only the page
    can show this state. If styles are removed, the text stays unchanged.
    """
    return (
        "<style>@keyframes rr-late { to { visibility: visible; } }</style>"
        + muted(text)
        + div(
            escape(f"Interrupted: these ranks have reported nothing for {_UPDATE_TIMEOUT_S} s."),
            f"visibility: hidden; animation: rr-late 0s {_UPDATE_TIMEOUT_S}s forwards; font-weight: bold",
        )
    )


def lanes_stopped_html(ranks: StoppedRanks) -> str:
    """Draw a launch stopped by the reader: each rank's output, and its current call."""
    lanes = _stopped_lanes(ranks.states, ranks.output, ranks.waits)
    head = muted(_stopped_heading(ranks))
    return _box_html(head + _stack_rows([_lane_html(lane) for lane in lanes], ranks.hosts))


def lanes_stopped_text(ranks: StoppedRanks) -> str:
    """Write a launch stopped by the reader as text."""
    texts = [
        [
            *(f"rank {lane.rank} | {line}".rstrip() for line in lane.lines),
            f"rank {lane.rank}: {lane.ending}",
        ]
        for lane in _stopped_lanes(ranks.states, ranks.output, ranks.waits)
    ]
    heading = _stopped_heading(ranks)
    return "\n".join([heading, *_under_hosts_text(texts, ranks.hosts)])


def _stopped_heading(ranks: StoppedRanks) -> str:
    what = f"The check of {ranks.checked} was stopped" if ranks.checked else "Stopped"
    return f"{what} after {ranks.seconds:.0f} s: {plural(len(ranks.states), 'rank')} ended."


def _stopped_lanes(
    states: Sequence[str], output: Sequence[str], doing: Sequence[Wait]
) -> list[Lane]:
    # a call is a noun, such as "barrier"; the state of a rank without a call begins with a preposition
    where = {
        wait.rank: f"in {describe_wait(wait)}" if wait.event else describe_wait(wait)
        for wait in doing
    }
    return [
        Lane(
            rank,
            split_lines(output[rank] if rank < len(output) else ""),
            None,
            "had returned" if state == "returned" else f"was {where.get(rank, state)}",
        )
        for rank, state in enumerate(states)
    ]


def _live_lane(rank: int, state: str, printed: str, wait: Wait | None) -> str:
    latest = "\n".join(split_lines(printed)[-_LIVE_LINES:])
    if state != "running":
        doing = muted("done" if state == "returned" else state)
    else:
        doing = "" if wait is None else muted("now: " + one_line(describe_wait(wait), 300))
    return _row_html(
        rank, _preformatted(latest) + (doing or muted("running")), edged=state in {"failed", "died"}
    )


def _lane_html(lane: Lane) -> str:
    body = _preformatted("\n".join(lane.lines))
    if lane.value is not None:
        body += muted("returned None") if _returned_none(lane) else _value_html(lane.value)
    if lane.ending:
        text = one_line(lane.ending, 300)
        body += div(_mark_html(lane.mark) + escape(text)) if lane.mark else muted(text)
    return _row_html(lane.rank, body or muted("printed nothing"), edged=bool(lane.mark))


def _banner(failure: RankFailure) -> str:
    first, *others = _failure_lines(failure) or ("",)
    head = f"<b>{escape(type(failure).__name__)}</b>: {code_to_html(clip(first, 400))}"
    if isinstance(failure, Deadlock | HostLost | RankTimeout):
        # Each lane shows the wait of its rank, so only advice is left here.
        rest = "".join(div(code_to_html(x)) for x in others if not x.startswith("  rank "))
    else:
        # The last line of a failure contains the learner's line or advice.
        rest = _preformatted("\n".join(others), is_unlimited=True)
    return div(
        div(head) + rest,
        f"border-left: 6px double {RED}; padding: 4px 10px; margin-bottom: 6px",
    )


def _row_html(rank: int, body: str, *, edged: bool) -> str:
    wide = "4.5em" if rank < 100 else "5.5em"
    name = div(f"rank {rank}", f"flex: 0 0 {wide}; opacity: 0.7; font-weight: bold")
    rest = div(body, "flex: 1 1 0px; min-width: 0px")
    pad = "6px" if edged else "10px"
    return div(
        name + rest,
        f"display: flex; border-left: {border_left(edged)}; padding: 1px 0px 1px {pad}; margin: 3px 0px",
    )


def _stack_rows(rows: list[str], hosts: Sequence[str]) -> str:
    # hosts: the host of each row; empty if all ran on this machine
    first = first_ranks(hosts)
    rows = [
        (_host_html(first[number]) if number in first else "") + row
        for number, row in enumerate(rows)
    ]
    return div("".join(rows), "max-height: 60em; overflow-y: auto")


def _host_html(host: str) -> str:
    return div(escape(one_line(host)), f"margin: 8px 0px 3px; border-bottom: 1px solid {GREY}")


def _under_hosts_text(lanes: list[list[str]], hosts: Sequence[str]) -> list[str]:
    """Insert the name of each host above the lines of its lanes, if any. hosts: the host of each lane."""
    lines: list[str] = []
    under = ""
    for number, lane in enumerate(lanes):
        if hosts and lane and hosts[number] != under:
            under = hosts[number]
            lines.append(f"{one_line(under)}:")
        lines += lane
    return lines


def _box_html(content: str) -> str:
    return div(content, "line-height: 1.45; max-width: 70em; text-align: left")


# Number of rows that always fit into a box of 14em, and number of letters in a row on a narrow page.
_ROWS, _LINE = 8, 60


def _preformatted(text: str, *, is_unlimited: bool = False) -> str:
    if not text:
        return ""
    room = "" if is_unlimited else "max-height: 14em; overflow: auto; "
    style = (
        f"margin: 0px; padding: 0px; {room}white-space: pre-wrap; "
        "background: transparent; color: inherit"
    )
    # a box that may need scrolling must be reachable by keyboard
    rows = sum(1 + len(line) // _LINE for line in text.splitlines())
    focus = ' tabindex="0"' if rows > _ROWS and not is_unlimited else ""
    return f'<pre style="{style}"{focus}>{escape(clean(text))}</pre>'


def _value_html(text: str) -> str:
    style = "margin: 0px; padding: 0px; white-space: pre-wrap; background: transparent"
    return f'<pre style="{style}"><b>→</b> {escape(text)}</pre>'


def _mark_html(word: str) -> str:
    style = (
        f"background-color: {RED}; color: white; font-weight: bold; font-size: 85%; "
        "padding: 0px 6px; margin-right: 8px"
    )
    return f'<span style="{style}">{word}</span>'
