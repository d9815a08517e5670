"""What learners and board send each other: JSON of a few kinds, checked in kind and in size by msgspec.

The only free text from a learner is the name, given once, and the code that a raised hand sends.
Exercises and mistakes are names that the board looks up in its own copy of the course.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

MOST_AT_ONCE = 50
MOST_CODE = 20_000
"""Characters of an answer that a raised hand sends; longer ones are cut off."""
MAX_BYTES = 256 << 10
"""Of a post. JSON writes a character with up to 6 bytes, and one post sends one answer's code at most."""

MAX_JOIN_BYTES = 4 << 10
"""Of a post that joins: it needs no token, so it is kept short."""

Id = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
Name = Annotated[str, Meta(max_length=100)]
Minutes = Annotated[float, Meta(ge=0, le=1e6)]


class Checked(Struct, tag="checked", forbid_unknown_fields=True):
    """How one check ended. minutes: ago. mistake: the title of the known mistake that explains it, or ""."""

    id: Id
    exercise: Name
    outcome: Name
    mistake: Name = ""
    minutes: Minutes = 0.0


class Hand(Struct, tag="hand", forbid_unknown_fields=True):
    """A hand that goes up or down. code: the answer, only where its author has handed it to `help_me`."""

    id: Id
    up: bool
    exercise: Name = ""
    code: Annotated[str, Meta(max_length=MOST_CODE)] = ""
    minutes: Minutes = 0.0


Event = Checked | Hand


class Post(Struct, forbid_unknown_fields=True):
    """Events of one learner, the oldest first."""

    events: Annotated[list[Event], Meta(max_length=MOST_AT_ONCE)]


class Join(Struct, forbid_unknown_fields=True):
    """A learner comes in. code: the room's; "" where JupyterHub says who it is."""

    name: Annotated[str, Meta(max_length=200)]
    code: Annotated[str, Meta(max_length=100)] = ""


class Joined(Struct):
    """The answer to a learner who has come in. token: says who sends what is sent from now on."""

    token: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    name: str


class Stored(Struct):
    """The answer to a post: all of its events are on the board's disk."""

    stored: Literal[True] = True
