"""The player of a learner's run, as a page of its own to which the instructor's pages link.

The records hold what ranks reported: data that a learner may have made up. So the player has a page apart,
which may run the player's script and nothing else, loads nothing, and reaches no other page.
"""

from __future__ import annotations

import msgspec

from helpers.grading.record import ExerciseRecord
from helpers.grading.reports.pages import render
from helpers.grading.reports.text import numbered
from helpers.trace.events import Trace

_MOST_BYTES, _MOST_RANKS, _MOST_EVENTS = 400_000, 64, 1_000
# The player is a script in the page that imports a module from it; both are the course's own.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' blob:; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)


def player_page(exercise: ExerciseRecord, learner: str) -> bytes | None:
    """Return the page as HTML in UTF-8; None where no trace was kept, or none that can be drawn."""
    if not exercise.trace or len(exercise.trace) > _MOST_BYTES:
        return None
    from helpers.views.timeline import timeline  # here: most reports draw nothing

    try:
        trace = msgspec.json.decode(exercise.trace, type=Trace)
        if not (0 < trace.world_size <= _MOST_RANKS and len(trace) <= _MOST_EVENTS):
            return None
        live = timeline(trace, title=numbered(exercise)).live
        player = live() if live is not None else ""
    except Exception:  # a record that was edited, or a trace that no run can have
        return None
    return render("player.html", policy=_POLICY, player=player, learner=learner, exercise=exercise)
