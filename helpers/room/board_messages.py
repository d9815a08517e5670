"""Define the messages between learners and board: JSON of a few kinds, with limited sizes.

msgspec checks them. The only free text from a learner is the name, sent once, and the code sent with a raised
hand. Exercises and mistakes are names that the board looks up in its copy of the course.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

MAX_EVENTS_PER_POST = 50
MAX_ANSWER_CHARS = 20_000
"""Maximum number of characters of an answer sent with a raised hand. Longer answers are cut off."""
MAX_BYTES = 256 << 10
"""Maximum number of bytes of a post: one answer's code, in JSON with up to 6 bytes per character."""

MAX_JOIN_BYTES = 4 << 10
"""Maximum size of a request to join, which is kept short because it needs no token."""

Id = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
Name = Annotated[str, Meta(max_length=100)]
Minutes = Annotated[float, Meta(ge=0, le=1e6)]


class CheckEvent(Struct, tag="checked", forbid_unknown_fields=True):
    """The result of one check.

    Args:
        mistake: The title of the known mistake that explains the result, or "".
        minutes: Minutes since the end of the check.
    """

    id: Id
    exercise: Name
    outcome: Name
    mistake: Name = ""
    minutes: Minutes = 0.0


class HandEvent(Struct, tag="hand", forbid_unknown_fields=True):
    """A raised or lowered hand. code: the answer, only if its author has passed it to `help_me`."""

    id: Id
    up: bool
    exercise: Name = ""
    code: Annotated[str, Meta(max_length=MAX_ANSWER_CHARS)] = ""
    minutes: Minutes = 0.0


Event = CheckEvent | HandEvent


class EventBatch(Struct, forbid_unknown_fields=True):
    """Events of one learner, oldest first."""

    events: Annotated[list[Event], Meta(max_length=MAX_EVENTS_PER_POST)]


class JoinRequest(Struct, forbid_unknown_fields=True):
    """A learner's request to join. code: the room's code, or "" if JupyterHub identifies the learner."""

    name: Annotated[str, Meta(max_length=200)]
    code: Annotated[str, Meta(max_length=100)] = ""


class JoinReply(Struct):
    """The reply to a joined learner. token: the secret that identifies the learner in all later posts."""

    token: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    name: str


class StoredReply(Struct):
    """The reply to a post after all of its events have been stored on the board's disk."""

    stored: Literal[True] = True
