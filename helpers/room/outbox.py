"""What a learner's checks send to the board of a room, kept in a file until the board has it.

    check -> note() -> .room-outbox.jsonl -> sender (a thread) -> the board

A check only adds a line to the file. If the board is away, nothing waits and nothing fails: the lines stay,
and are sent when it is back, by this kernel or a later one. Each has an id, so that the board stores it once
however often it is sent.
"""

from __future__ import annotations

import os
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Sequence
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any

import msgspec

from helpers.course.progress import locked, progress_file
from helpers.room.messages import (
    MOST_AT_ONCE,
    Checked,
    Event,
    Hand,
    Join,
    Joined,
    Post,
)

TIMEOUT_S = 5.0
PAUSES_S = (1.0, 5.0, 15.0, 60.0)
"""How long a sender waits before it tries again; the last one from then on."""
MOST_KEPT = 4 << 20
"""Bytes of the file. More checks than anyone makes without a board: what comes after is not sent."""
_MAX_REPLY = 64 << 10
_SENDING = threading.Lock()
_WAKE = threading.Event()


class Place(msgspec.Struct):
    """The room that a learner has joined, as kept in a file that only the learner can read."""

    url: str
    token: str
    name: str


class Line(msgspec.Struct):
    """A line of the outbox. at: seconds since the epoch."""

    at: float
    event: Event


class RoomError(Exception):
    """The board cannot be reached, or has refused. One line: why, and what to do."""

    # IPython shows this in place of a traceback through the course's own files.
    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


class Refused(RoomError):
    """The board's answer is no. status: as in HTTP."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status


def note(exercise: str, outcome: str, mistake: str = "") -> None:
    """Keep how a check ended for the board, if there is one. Never fails, and never waits for the board."""
    if not has_joined():
        return
    with suppress(OSError):  # a full disk: the check is worth more than the board
        put(Checked(_new_id(), exercise, outcome, mistake))


def raise_hand(up: bool, exercise: str, code: str) -> None:
    """Keep a hand that goes up or down for the board. Raise OSError if the file cannot be written."""
    put(Hand(_new_id(), up, exercise, code))


def put(event: Event) -> None:
    """Add an event to the outbox, and see that it is sent soon. Raise OSError if it cannot be written."""
    path = _outbox_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path), _private(path, "ab") as file:
        if file.tell() < MOST_KEPT:
            file.write(msgspec.json.encode(Line(time.time(), event)) + b"\n")
    send_soon()


def send_soon() -> None:
    """Have a thread send what the outbox holds, now; start one unless one is at it."""
    _WAKE.set()
    if _SENDING.acquire(blocking=False):
        # A daemon: a kernel that ends does not wait for the board. What is left stays in the file.
        threading.Thread(target=_send_all, name="room", daemon=True).start()


def _send_all() -> None:
    try:
        tries = 0
        while waiting():
            try:
                send_some()
                tries = 0
            except (RoomError, OSError, msgspec.MsgspecError):
                _WAKE.clear()
                _WAKE.wait(PAUSES_S[min(tries, len(PAUSES_S) - 1)])
                tries += 1
    finally:
        _SENDING.release()
    # A line may have come after the last look, while its check saw this thread still at work.
    if waiting():
        send_soon()


def waiting() -> list[Line]:
    """Return what is still to be sent, the oldest first. Lines that cannot be read are left out."""
    path = _outbox_file()
    with suppress(OSError), locked(path):
        return _read(path)
    return []


def _read(path: Path) -> list[Line]:
    try:
        with path.open("rb") as file:
            lines = file.read(MOST_KEPT + (1 << 20)).splitlines()
    except FileNotFoundError:  # nothing to send; or another kernel has just sent it
        return []
    found = []
    for line in lines:
        with suppress(msgspec.MsgspecError, RecursionError):  # cut off, or edited
            found.append(msgspec.json.decode(line, type=Line))
    return found


def send_some() -> None:
    """Send the oldest lines, and take them out of the file once the board has stored them.

    Raise RoomError or OSError if that failed; then they stay.
    """
    lines = _next(waiting())
    if not lines:
        return
    room = place() or join_as_user()
    now = time.time()
    for line in lines:
        line.event.minutes = min(1e6, max(0.0, round((now - line.at) / 60, 1)))
    try:
        post(room.url, "api/events", Post([line.event for line in lines]), room.token)
    except Refused as error:
        if error.status == 401 and os.environ.get("REAL_RANKS_ROOM"):
            join_as_user(refused=room.token)  # the room has a new file
        if error.status not in (400, 413):  # these it would refuse each time
            raise
    _forget({line.event.id for line in lines})


def _next(lines: Sequence[Line]) -> list[Line]:
    """Return the lines of one post: of those with code, which may be long, one at a time."""
    for count, line in enumerate(lines[:MOST_AT_ONCE]):
        if isinstance(line.event, Hand) and line.event.code:
            return list(lines[: count + 1])
    return list(lines[:MOST_AT_ONCE])


def _forget(sent: set[str]) -> None:
    path = _outbox_file()
    with locked(path):
        left = [line for line in _read(path) if line.event.id not in sent]
        if left:
            _replace(path, b"".join(msgspec.json.encode(line) + b"\n" for line in left))
        else:
            path.unlink(missing_ok=True)


# --- the room that was joined ------------------------------------------------------------------------


def has_joined() -> bool:
    """Whether this learner has joined a room, by a code or as a user of JupyterHub."""
    return bool(os.environ.get("REAL_RANKS_ROOM")) or _place_file().exists()


def place() -> Place | None:
    """Return the room that this learner has joined, unless REAL_RANKS_ROOM names another."""
    with suppress(OSError, msgspec.MsgspecError):
        room = msgspec.json.decode(_place_file().read_bytes()[:10_000], type=Place)
        return room if room.url == (os.environ.get("REAL_RANKS_ROOM") or room.url) else None
    return None


def join_as_user(refused: str = "") -> Place:
    """Join the room that REAL_RANKS_ROOM names, as the user that JupyterHub knows.

    Raise RoomError or OSError. refused: the token that the board no longer takes.
    """
    url, token = os.environ.get("REAL_RANKS_ROOM"), os.environ.get("REAL_RANKS_ROOM_TOKEN")
    if not url:
        raise RoomError(
            "The file of the room that was joined cannot be read: join(url, code) again."
        )
    if not token:  # the server's own token could be used to run code as this user: it is never sent
        raise RoomError(
            "This hub gives its users no token for the room. docs/room.md says how it can."
        )
    # Of two kernels that join at once the second would make the first one's token invalid.
    with locked(_place_file()):
        room = place()
        if room is None or room.token == refused:
            room = keep(url, post(url, "api/join", Join(""), token, Joined))
        return room


def keep(url: str, joined: Joined) -> Place:
    """Write down the room that was joined, for this learner's eyes only."""
    room = Place(url, joined.token, joined.name)
    path = _place_file()
    _replace(path, msgspec.json.encode(room))
    return room


def leave() -> None:
    """Forget the room, and what has not been sent to it."""
    for path in (_place_file(), _outbox_file()):
        path.unlink(missing_ok=True)


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # A new file takes the old one's name: others can read neither, and a crash leaves the one or the other.
    partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    with _private(partial, "xb") as file:
        file.write(content)
    os.replace(partial, path)


def _private(path: Path, mode: str) -> IO[bytes]:
    return open(path, mode, opener=lambda name, flags: os.open(name, flags, 0o600))


def _place_file() -> Path:
    return progress_file().with_name(".room.json")


def _outbox_file() -> Path:
    return progress_file().with_name(".room-outbox.jsonl")


def _new_id() -> str:
    return uuid.uuid4().hex


# --- HTTP ------------------------------------------------------------------------------------------


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would send the token elsewhere."""

    def redirect_request(self, *about: Any) -> None:
        return None


def post(url: str, path: str, message: msgspec.Struct, token: str = "", answer: Any = Any) -> Any:
    """Post a message to the board and return its answer. Raise RoomError, within a deadline."""
    try:
        request = urllib.request.Request(
            f"{url.rstrip('/')}/{path}",
            msgspec.json.encode(message),
            {"Content-Type": "application/json", "Authorization": f"Bearer {token}"},
        )
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=TIMEOUT_S) as reply:
            return msgspec.json.decode(reply.read(_MAX_REPLY), type=answer)
    except urllib.error.HTTPError as error:
        with error:
            said = error.read(500).decode("utf-8", "replace")
        raise Refused(error.code, f"The board at {url} refused: {said}") from None
    except (OSError, HTTPException) as error:
        why = getattr(error, "reason", None) or error
        raise RoomError(
            f"No board answers at {url} ({why}). Compare the address with the one your teacher shows."
        ) from None
    except (msgspec.MsgspecError, ValueError) as error:
        raise RoomError(f"What answers at {url} is not a board ({error}).") from None
