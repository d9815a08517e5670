"""Send a learner's events to the board of a room, and store them in a file until they have arrived.

    check -> send_check() -> .room-outbox.jsonl -> sender (a thread) -> the board

A check only appends a line to the file. If the board is unreachable, the check neither waits nor fails: the
lines are kept and are sent later, by this kernel or a later kernel. Each line has an id, so that the board
stores it only once, even if it is sent several times.
"""

from __future__ import annotations

import os
import threading
import time
import urllib.error
import urllib.request
import uuid
from contextlib import suppress
from functools import cache
from http.client import HTTPException
from itertools import accumulate
from pathlib import Path
from typing import IO, Any

import msgspec

from helpers.check_result import CheckResult
from helpers.course.progress import locked, progress_file
from helpers.room.board_messages import (
    MAX_BYTES,
    MAX_EVENTS_PER_POST,
    CheckEvent,
    Event,
    EventBatch,
    JoinReply,
    JoinRequest,
)

TIMEOUT_S = 5.0
RETRY_INTERVAL_S = 10.0
"""Time until the sender tries again, unless there is a new event."""
_MAX_REPLY = 64 << 10
_WAKE_SENDER = threading.Event()


class JoinedRoom(msgspec.Struct):
    """The room joined by a learner, stored in a file that is readable only by the learner."""

    url: str
    token: str
    name: str


class OutboxLine(msgspec.Struct):
    """A line of the outbox. at: seconds since the epoch."""

    at: float
    event: Event


class RoomError(Exception):
    """The board cannot be reached, or has refused a post. The message is one line with the reason and advice.

    status: The HTTP status of the board's answer, or 0 if there was no answer.
    """

    status = 0

    # IPython shows this instead of a traceback through the course's files.
    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


def send_check(result: CheckResult) -> CheckResult:
    """Store a finished check for the board if the exercise was attempted."""
    if result.attempted:
        record_check(result.name, result.outcome.value, result.mistake)
    return result


def record_check(exercise: str, outcome: str, mistake: str = "") -> None:
    """Store a check's result for the board, if there is one, without ever failing or waiting."""
    if has_joined():
        with suppress(OSError):  # a full disk must not make the check fail
            add_event(CheckEvent(new_id(), exercise, outcome, mistake))


def add_event(event: Event) -> None:
    """Add an event to the outbox and send it soon. Raise OSError if it cannot be written."""
    path = _outbox_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path), _open_private(path, "ab") as file:
        file.write(_as_line(OutboxLine(time.time(), event)))
    send_soon()


def send_soon() -> None:
    """Wake the thread that sends the outbox."""
    _start_sender()
    _WAKE_SENDER.set()


@cache
def _start_sender() -> None:
    # Use a daemon thread, so that the kernel exits without waiting for the board. Unsent lines stay in the
    # file.
    threading.Thread(target=_send_all, name="room", daemon=True).start()


def _send_all() -> None:
    while True:
        _WAKE_SENDER.clear()
        with suppress(RoomError, OSError, msgspec.MsgspecError):
            while unsent_lines():
                send_batch()
        _WAKE_SENDER.wait(RETRY_INTERVAL_S)


def unsent_lines() -> list[OutboxLine]:
    """Return the unsent lines, oldest first. Unreadable lines are left out."""
    path = _outbox_file()
    with suppress(OSError), locked(path):
        return _read_lines(path)
    return []


def _read_lines(path: Path) -> list[OutboxLine]:
    found = []
    with suppress(FileNotFoundError):
        for line in path.read_bytes().splitlines():
            with suppress(msgspec.MsgspecError, RecursionError):  # the line was cut off or edited
                found.append(msgspec.json.decode(line, type=OutboxLine))
    return found


def send_batch() -> None:
    """Send the oldest lines, and remove them from the file once the board has stored them.

    Raise RoomError or OSError, and keep the lines, if sending fails.
    """
    lines = unsent_lines()[:MAX_EVENTS_PER_POST]
    if not lines:
        return
    # A single event always fits, but the code of several hands may be too long.
    sizes = list(accumulate(len(_as_line(line)) for line in lines))
    lines = [line for line, size in zip(lines, sizes, strict=True) if size < 0.9 * MAX_BYTES]
    room = joined_room() or join_as_user()
    for line in lines:
        line.event.minutes = min(1e6, max(0.0, round((time.time() - line.at) / 60, 1)))
    try:
        post(room.url, "api/events", EventBatch([line.event for line in lines]), room.token)
    except RoomError as error:
        if error.status == 401 and os.environ.get("REAL_RANKS_ROOM"):
            join_as_user(refused_token=room.token)  # the room has a new file
        if error.status not in (400, 413):  # the board would always refuse these lines
            raise
    sent = {line.event.id for line in lines}
    path = _outbox_file()
    with locked(path):
        left = [line for line in _read_lines(path) if line.event.id not in sent]
        if left:
            _replace_file(path, b"".join(map(_as_line, left)))
        else:
            path.unlink(missing_ok=True)


# --- the room that was joined ------------------------------------------------------------------------


def has_joined() -> bool:
    """Return whether this learner has joined a room, by a code or as a user of JupyterHub."""
    return bool(os.environ.get("REAL_RANKS_ROOM")) or _room_file().exists()


def joined_room() -> JoinedRoom | None:
    """Return the room joined by this learner, or None if REAL_RANKS_ROOM names a different room."""
    with suppress(OSError, msgspec.MsgspecError):
        room = msgspec.json.decode(_room_file().read_bytes()[:10_000], type=JoinedRoom)
        return room if room.url == (os.environ.get("REAL_RANKS_ROOM") or room.url) else None
    return None


def join_as_user(refused_token: str = "") -> JoinedRoom:
    """Join the room named by REAL_RANKS_ROOM, as the user known to JupyterHub.

    refused_token: a token that the board no longer accepts. Raise RoomError or OSError.
    """
    url, token = os.environ.get("REAL_RANKS_ROOM"), os.environ.get("REAL_RANKS_ROOM_TOKEN")
    if not url:
        raise RoomError("The file that stores your room cannot be read: join(url, code) again.")
    if not token:  # never send the server's token, which would allow running code as this user
        raise RoomError(
            "This hub gives its users no token for the room. docs/room.md explains how to add one."
        )
    # If two kernels joined at the same time, the second would make the first one's token invalid.
    with locked(_room_file()):
        room = joined_room()
        if room is None or room.token == refused_token:
            room = store_room(url, post(url, "api/join", JoinRequest(""), token, JoinReply))
        return room


def store_room(url: str, joined: JoinReply) -> JoinedRoom:
    """Store the joined room, readable only by this learner."""
    room = JoinedRoom(url, joined.token, joined.name)
    _replace_file(_room_file(), msgspec.json.encode(room))
    return room


def leave_room() -> None:
    """Forget the room and all events not yet sent to it."""
    for path in (_room_file(), _outbox_file()):
        path.unlink(missing_ok=True)


def new_id() -> str:
    return uuid.uuid4().hex


def _as_line(line: OutboxLine) -> bytes:
    return msgspec.json.encode(line) + b"\n"


def _replace_file(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Replace the old file by a new one, so that other users can read neither, and one of the two is intact
    # after a crash.
    partial = path.with_name(f"{path.name}.{new_id()}")
    with _open_private(partial, "xb") as file:
        file.write(content)
    os.replace(partial, path)


def _open_private(path: Path, mode: str) -> IO[bytes]:
    return open(path, mode, opener=lambda name, flags: os.open(name, flags, 0o600))


def _room_file() -> Path:
    return progress_file().with_name(".room.json")


def _outbox_file() -> Path:
    return progress_file().with_name(".room-outbox.jsonl")


# --- HTTP ------------------------------------------------------------------------------------------


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects, because they would send the token to a different address."""

    def redirect_request(self, *args: Any) -> None:
        return None


def post(
    url: str, path: str, message: msgspec.Struct, token: str = "", reply_type: Any = Any
) -> Any:
    """Post a message to the board and return its answer. Raise RoomError if that fails or times out."""
    try:
        request = urllib.request.Request(
            f"{url.rstrip('/')}/{path}",
            msgspec.json.encode(message),
            {"Content-Type": "application/json", "Authorization": f"Bearer {token}"},
        )
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=TIMEOUT_S) as reply:
            return msgspec.json.decode(reply.read(_MAX_REPLY), type=reply_type)
    except urllib.error.HTTPError as error:
        with error:
            said = error.read(500).decode("utf-8", "replace")
        refused = RoomError(f"The board at {url} refused: {said}")
        refused.status = error.code
        raise refused from None
    except (OSError, HTTPException) as error:
        why = getattr(error, "reason", None) or error
        raise RoomError(
            f"No board answers at {url} ({why}). Compare the address with the one your teacher shows."
        ) from None
    except (msgspec.MsgspecError, ValueError) as error:
        raise RoomError(f"The server at {url} is not a board ({error}).") from None
