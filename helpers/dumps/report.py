"""Create a page about a hang: the explanation, the waits between ranks, and the lanes of all ranks.

The page is a single file, which loads no other files. All texts from dumps are escaped.
"""

from __future__ import annotations

from html import escape

from helpers.dumps.explain import Explanation
from helpers.views.page_style import PAGE_STYLE
from helpers.views.picture import Picture
from helpers.views.plain import for_log, one_line
from helpers.views.timeline import timeline
from helpers.views.wait_graph import wait_graph

MAX_DRAWN_RANKS = 128
_STYLE = (
    "body { max-width: 62rem; margin: 2rem auto; padding: 0 1rem } pre { white-space: pre-wrap }"
)


def report_page(explanation: Explanation, title: str) -> str:
    """Return the page of an explanation. title: the folder's name."""
    heading = escape(one_line(f"{title}: {explanation.headline}", 200))
    parts = [f"<h1>{heading}</h1>", f"<pre>{escape(for_log(explanation.verdict))}</pre>"]
    diagnosis, trace = explanation.diagnosis, explanation.merged.trace
    if diagnosis is not None and any(wait.waits_for for wait in diagnosis.waits):
        parts += ["<h2>Who waits for whom</h2>", _draw(wait_graph(diagnosis))]
    if trace.events and trace.world_size <= MAX_DRAWN_RANKS:
        picture = timeline(trace)
        parts += ["<h2>The calls of each rank</h2>", _draw(picture)]
        parts.append(
            f"<details><summary>In words</summary><pre>{escape(picture.text)}</pre></details>"
        )
    elif trace.events:
        parts.append(f"<p>Lanes are drawn for at most {MAX_DRAWN_RANKS} ranks.</p>")
    remarks = [*explanation.notes, *(f"not read: {line}" for line in explanation.problems)]
    if remarks:
        items = "".join(f"<li>{escape(one_line(line, 300))}</li>" for line in remarks)
        parts += ["<h2>Notes</h2>", f"<ul>{items}</ul>"]
    style = PAGE_STYLE.read_text(encoding="utf-8") + _STYLE
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{heading}</title>'
        f"<style>{style}</style></head><body><main>\n"
        + "\n".join(parts)
        + "\n</main></body></html>\n"
    )


def _draw(picture: Picture) -> str:
    return picture.live() if picture.live is not None else picture.html()
