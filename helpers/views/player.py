"""Prepare a run that a reader can step through, as data for player.js in the reader's page.

    Trace -> timeline (drawing, flights) -> player_data() -> data -> player.js

The page does not draw the run: it moves the drawing's marks, and shows or hides them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from helpers.ranks.failures import Deadlock, RankTimeout
from helpers.ranks.run import RankFailure, Run
from helpers.trace.events import Event, Trace
from helpers.views.palette import look_of
from helpers.views.picture import TraceSource
from helpers.views.plain import one_line, short_bytes
from helpers.views.rank_endings import endings
from helpers.views.sequence import headline, label_of
from helpers.views.timeline_layout import Layout, Steps
from helpers.views.wait_graph import wait_graph

MAX_PLAYED = 40_000
"""Maximum number of calls sent to a page, for example 2,000 on each of 16 ranks. The earliest are kept."""
PLAYER_SCRIPT = Path(__file__).with_name("player.js")


def player_data(
    source: TraceSource,
    trace: Trace,
    layout: Layout,
    steps: Steps,
    flights: Sequence[Sequence[float]],
) -> dict[str, Any]:
    """Return a run's calls as data for the page: plain JSON.

    Each call has a number in each column of `bars`. Texts and places are written once, and their columns
    contain indices. steps: (ns since the first event, kind of step, number of a call), in order. flights:
    messages, as (step of the send, step of the receive or -1, heights of both). failure: the failure's title,
    with code between backticks. made: the time of the run in seconds since 1970, for a player that starts
    automatically.
    """
    texts: dict[str, int] = {}
    places: dict[tuple[str, int, str], int] = {}

    @cache  # use a cache, because thousands of calls come from only a few lines
    def number(text: str) -> int:
        return texts.setdefault(one_line(text, 200), len(texts))

    calls = [bar.event for bar in layout.bars]
    failure = source.failure if isinstance(source, Run) else None
    found = [_call_site(event) for event in calls]
    return {
        "headline": headline(trace),
        "ranks": len(layout.ranks),
        "length": layout.length_ns,
        "left_out": layout.left_out,
        "steps": steps.moments,
        "at": [round(at, 6) for at in steps.at],
        "bars": {
            "rank": [event.rank for event in calls],
            "begin": steps.begin,
            "wait": steps.wait,
            "end": steps.end,
            "kind": [number(look_of(event).name) for event in calls],
            "label": [number(label_of(event)) for event in calls],
            "about": [number(_describe_call(event)) for event in calls],
            "before": [number(event.before) for event in calls],
            "after": [number(event.after) for event in calls],
            "place": [-1 if p is None else places.setdefault(p, len(places)) for p in found],
        },
        "texts": list(texts),
        "places": list(places),
        "flights": flights,
        "failure": f"{type(failure).__name__}: {one_line(failure.title, 300)}" if failure else "",
        "ending": _describe_ending(source, failure)
        if isinstance(source, Run) and failure
        else None,
        "made": 0.0,
    }


def _describe_call(event: Event) -> str:
    """Describe a call's data, and whether the call failed."""
    parts = []
    if event.shapes:
        shapes = ", ".join(str(list(shape)) for shape in event.shapes[:3])
        parts.append(f"{event.dtype} {shapes}{' …' if len(event.shapes) > 3 else ''}")
    if event.nbytes:
        parts.append(short_bytes(event.nbytes))
    if event.reduce_op:
        parts.append(event.reduce_op)
    if event.error:
        parts.append(f"failed: {event.error}")
    return ", ".join(parts)


def _call_site(event: Event) -> tuple[str, int, str] | None:
    where = event.where
    if where is None:
        return None
    return one_line(where.cell or where.file), where.line, one_line(where.source, 120)


def _describe_ending(run: Run, failure: RankFailure) -> dict[str, Any]:
    """Describe the end of a blocked run: which ranks wait for which, in words and as a drawing.

    In the result, `ranks` contains the known state of each rank at the end, by the rank's number.
    """
    ending: dict[str, Any] = {
        "ranks": {rank: one_line(text, 200) for rank, text in endings(run).items()},
    }
    if isinstance(failure, Deadlock | RankTimeout) and failure.waits:
        graph = wait_graph(failure)
        ending["graph"] = graph.figure.svg(graph.text)  # type: ignore[union-attr]
    return ending
