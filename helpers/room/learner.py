"""Join a room and raise a hand, from a learner's notebook: `join` and `help_me`."""

from __future__ import annotations

import getpass
from typing import Any

from helpers.checks.headings import find_heading
from helpers.course.show_message import LearnerMessage
from helpers.room import outbox
from helpers.room.board_messages import MAX_ANSWER_CHARS, HandEvent, JoinReply, JoinRequest
from helpers.room.outbox import RoomError

WHAT_IS_SENT = (
    "From now on each check sends the name of its exercise, its outcome, which known mistake explains it, "
    "and how many minutes ago it was. Your code stays here: only `help_me(your_function)` sends it."
)


def join(url: str, code: str = "", name: str = "") -> LearnerMessage:
    """Join your teacher's room, once. Its board then shows the results of your checks, never your code.

    `join("")` leaves the room again.

    Args:
        url, code: The address and the code that your teacher shows you.
        name: Your name on the board; by default, your login name.

    Raises:
        RoomError: No board answers, or the code is wrong.
    """
    if not url:
        outbox.leave_room()
        return LearnerMessage("You have left the room. Nothing more is sent.")
    before = outbox.joined_room()
    # Send the token if it is for the same room, so that a learner who joins twice is still one learner.
    token = before.token if before is not None and before.url == url else ""
    message = JoinRequest(name or _login_name(), code)
    room = outbox.store_room(url, outbox.post(url, "api/join", message, token, JoinReply))
    outbox.send_soon()  # send events stored while the board was unreachable
    return LearnerMessage(f"You have joined as {room.name}. {WHAT_IS_SENT}")


def help_me(answer: Any = "", *, done: bool = False) -> LearnerMessage:
    """Raise your hand: your teacher sees your name and the exercise that you are working on.

    Args:
        answer: Your function, whose code is then sent as well, or the name or number of an exercise.
        done: Whether to take your hand down.

    Raises:
        RoomError: You have not joined a room.
    """
    if not outbox.has_joined():
        raise RoomError("You have not joined a room. To join one, call join(url, code).")
    if not isinstance(answer, str):
        exercise, code = _find_answer(answer)
    else:
        exercise, code = find_heading(answer).name if answer else "", ""
    outbox.add_event(HandEvent(outbox.new_id(), not done, exercise, code))
    if done:
        return LearnerMessage("Your hand is down.")
    sent = f"The code of `{exercise}` is sent with it." if code else "No code is sent with it."
    return LearnerMessage(f"Your hand is up. {sent} `help_me(done=True)` takes it down.")


def _find_answer(answer: Any) -> tuple[str, str]:
    """Return the exercise and the source of a learner's function, as `check` would find it."""
    from helpers.answers.data import Answer
    from helpers.answers.history import answer_from_history
    from helpers.ranks.cells import ipython

    shell = ipython()
    if shell is None:
        raise RoomError("help_me() reads the cells of a notebook, so call it in one.")
    inputs = getattr(shell.history_manager, "input_hist_raw", shell.user_ns.get("In", []))
    found = answer_from_history(answer, inputs, shell.user_ns)
    if not isinstance(found, Answer):
        raise RoomError(f"Your hand is not up: {found.message} `help_me()` sends no code.")
    return found.name, found.source[:MAX_ANSWER_CHARS]


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user may have no name
        return "someone"
