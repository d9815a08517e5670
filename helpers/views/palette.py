"""Define the look of each kind of event, for the whole course.

Colors are Okabe and Ito's (https://jfly.uni-koeln.de/color/), which remain distinct in all common forms of
color blindness. Backward is a darker blue than forward, so that they differ in gray. Each kind also has a
different hatch, marker and line style, so that pictures are readable in gray.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from helpers.trace.events import Event

if TYPE_CHECKING:
    from matplotlib.colors import Colormap


@dataclass(frozen=True, slots=True)
class Look:
    """The look of one kind of event. hatch, marker and line are matplotlib's codes.

    tint: the color, lightened until black text and the hatch are readable on it.
    """

    name: str
    color: str
    tint: str
    hatch: str
    marker: str
    line: str | tuple[int, tuple[int, ...]]


SEND = Look("send", "#0072B2", "#CCE3F0", "////", ">", "-")
RECV = Look("recv", "#009E73", "#CCECE3", "\\\\\\\\", "<", "--")
COLLECTIVE = Look("collective", "#A8447F", "#F5E1EC", "....", "o", "-.")
WAIT = Look("waiting", "#E69F00", "#FAECCC", "----", "s", ":")
SPAN = Look("span", "#666666", "#E4E4E4", "", "D", (0, (8, 2)))
FORWARD = Look("forward", "#56B4E9", "#DDF0FB", "||||", "^", (0, (5, 1)))
BACKWARD = Look("backward", "#5B4FA3", "#D3CFE8", "++++", "v", (0, (1, 1)))
FAILURE = Look("failure", "#D55E00", "#F7DFCC", "xxxx", "X", (0, (3, 1, 1, 1, 1, 1)))

KINDS = (SEND, RECV, COLLECTIVE, WAIT, FORWARD, BACKWARD, SPAN, FAILURE)

RIGHT, WRONG = "rgb(0, 122, 85)", "rgb(200, 74, 0)"
"""Background colors of a verdict's sign. White text is readable on them, and they suit both themes."""

INK = "#222222"
FAINT = "#9A9A9A"

_STAGE_PATTERN = re.compile(r"(?i:forward|backward)|[FB](?=\d)")


def amount_colormap() -> Colormap:
    """Return matplotlib's colors for amounts, from the tint of messages for 0 to their full color."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("amounts", [SEND.tint, SEND.color])


def look_of(event: Event) -> Look:
    """Return the look of an event. An unknown op is drawn as a collective.

    Spans called "forward", "F0", "backward" or "B0" have the same look as in schedules.
    """
    if event.op == "span":
        found = _STAGE_PATTERN.match(event.call)
        return SPAN if found is None else FORWARD if found[0].lower().startswith("f") else BACKWARD
    return {"send": SEND, "recv": RECV}.get(event.op, COLLECTIVE)
