"""Store the board's data in an SQLite database in WAL mode, with acknowledged events on the disk.

Every post of a class waits for the disk, and each sync takes milliseconds. Therefore posts are stored in
groups:

    posts -> queue -> one writer: all waiting posts in one transaction -> sync -> answers
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

from helpers.course.progress import NO_LOCK_ERRNOS
from helpers.room.board_messages import CheckEvent, Event, HandEvent

T = TypeVar("T")

MAX_GROUP = 500
MAX_EVENTS = 50_000
"""Maximum number of a learner's events, a hundred times that of a whole course. More are refused."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS learners (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, token BLOB NOT NULL UNIQUE, user TEXT UNIQUE
);
CREATE TABLE IF NOT EXISTS events (
    number INTEGER PRIMARY KEY, learner INTEGER NOT NULL REFERENCES learners, id TEXT NOT NULL,
    at REAL NOT NULL, kind TEXT NOT NULL, exercise TEXT NOT NULL, outcome TEXT NOT NULL,
    mistake TEXT NOT NULL, code TEXT NOT NULL, UNIQUE (learner, id)
);
CREATE INDEX IF NOT EXISTS events_with_code ON events (learner) WHERE code <> '';
"""
CODE, KEY = "code", "key"
_LENGTHS = {CODE: 8, KEY: 32}
# without easily confused letters, and without vowels, so that codes contain no words
_ALPHABET = "bcdfghjkmnpqrstvwxyz23456789"


class TooManyEvents(Exception):
    """A learner has sent more than MAX_EVENTS events."""


class NotARoom(Exception):
    """The file cannot be opened as a room's database. The message is one line with the reason and advice."""


@dataclass(frozen=True)
class Learner:
    """A joined learner. token: the SHA-256 of the secret stored only on the learner's machine."""

    id: int
    name: str
    token: bytes


@dataclass(frozen=True)
class StoredEvent:
    """A stored event. time_s: seconds since the epoch, by the board's clock."""

    learner: int
    time_s: float
    event: Event


def token_digest(token: str) -> bytes:
    """Return the hash of a token. A plain hash is enough, because tokens are long and random."""
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()


class Store:
    """The open database.

    Use its plain methods in commands and before the board serves, and its coroutines in the serving board.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, creating it if necessary. Raise NotARoom."""
        self._path = path
        try:
            # make it private, because it contains learners' names
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            try:
                # With WAL and FULL, a commit returns once it is on the disk, so a kill at any time loses no
                # acknowledged event.
                self._db.executescript(
                    "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"
                    + _SCHEMA
                )
                counts = self._db.execute("SELECT learner, count(*) FROM events GROUP BY learner")
                self._counts: dict[int, int] = dict(counts.fetchall())
                self.learners()
            except BaseException:
                self._db.close()
                raise
        except OSError as error:
            raise NotARoom(
                f"{path} cannot be opened: {error.strerror}. Pass the path of a file."
            ) from error
        except sqlite3.Error as error:
            raise NotARoom(
                f"{path} is not the database of a room ({error}). Choose a different file with "
                f"--file."
            ) from error
        self._queue: asyncio.Queue[_PendingPost] = asyncio.Queue()
        self._busy = asyncio.Lock()
        # Use a separate thread, because asyncio's few threads also ask JupyterHub, and a slow hub must not
        # delay the storing of posts.
        self._disk = ThreadPoolExecutor(1, "room-disk")
        self._lock: IO[bytes] | None = None

    def lock(self) -> None:
        """Lock this file for this board until `close`. Raise NotARoom if another board is serving it."""
        lock = self._path.with_name(f"{self._path.name}.lock").open("ab")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise NotARoom(
                f"Another board is serving {self._path}. Stop it first, or choose a different file "
                f"(--file)."
            ) from None
        except OSError as error:
            lock.close()
            if error.errno not in NO_LOCK_ERRNOS:
                raise
        else:
            self._lock = lock

    def secret(self, name: str) -> str:
        """Return a secret of the room, CODE or KEY, created by the first call and then kept."""
        self._db.execute("INSERT OR IGNORE INTO settings VALUES (?, ?)", (name, _random_text(name)))
        row = self._db.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
        return str(row[0])

    def replace_code(self) -> str:
        """Replace the code, keeping the joined learners."""
        self._db.execute(
            "INSERT OR REPLACE INTO settings VALUES (?, ?)", (CODE, _random_text(CODE))
        )
        return self.secret(CODE)

    def forget(self, learner: int) -> None:
        """Remove a learner and all of their events."""
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("DELETE FROM events WHERE learner = ?", (learner,))
            self._db.execute("DELETE FROM learners WHERE id = ?", (learner,))
        self._counts.pop(learner, None)

    def silent_learners(self) -> list[int]:
        """Return the learners without events."""
        rows = self._db.execute(
            "SELECT id FROM learners WHERE id NOT IN (SELECT learner FROM events)"
        )
        return [int(row[0]) for row in rows]

    def version(self) -> int:
        """Return a number that changes once another process has changed the file."""
        return int(self._db.execute("PRAGMA data_version").fetchone()[0])

    async def run_in_disk_thread(self, method: Callable[..., T], *args: object) -> T:
        """Call a plain method in the disk's thread, between groups of posts."""
        async with self._busy:
            return await asyncio.get_running_loop().run_in_executor(self._disk, method, *args)

    def learners(self) -> list[Learner]:
        """Return all learners in the order of joining."""
        rows = self._db.execute("SELECT id, name, token FROM learners ORDER BY id")
        return [Learner(*row) for row in rows]

    def stored_events(self) -> list[StoredEvent]:
        """Return all events in the order of storing."""
        rows = self._db.execute(
            "SELECT learner, at, id, kind, exercise, outcome, mistake, code FROM events ORDER BY number"
        )
        return [_stored_event(*row) for row in rows]

    async def join(self, name: str, token: str, user: str | None = None) -> Learner:
        """Store a learner. user: the JupyterHub login, if there is one, which identifies the learner."""
        return await self.run_in_disk_thread(self._join, name, token_digest(token), user)

    def _join(self, name: str, token: bytes, user: str | None) -> Learner:
        row = self._db.execute(
            "INSERT INTO learners (name, token, user) VALUES (?, ?, ?) ON CONFLICT (user) DO UPDATE SET "
            "name = excluded.name, token = excluded.token RETURNING id, name, token",
            (name, token, user),
        ).fetchone()
        return Learner(*row)

    async def rename(self, learner: Learner, name: str) -> Learner:
        """Change a learner's name."""
        change = ("UPDATE learners SET name = ? WHERE id = ?", (name, learner.id))
        await self.run_in_disk_thread(self._db.execute, *change)
        return Learner(learner.id, name, learner.token)

    async def add(self, learner: int, events: Sequence[Event]) -> list[StoredEvent]:
        """Store a learner's events. Return the new events once they are on the disk.

        Raise TooManyEvents, or sqlite3.Error if the disk is full.
        """
        if self._counts.get(learner, 0) + len(events) > MAX_EVENTS:
            raise TooManyEvents
        done = asyncio.get_running_loop().create_future()
        await self._queue.put(_PendingPost(learner, events, done))
        found: list[StoredEvent] = await done
        return found

    async def write(self) -> None:
        """Store the events passed to `add`, group by group, until cancelled."""
        while True:
            group = [await self._queue.get()]
            while not self._queue.empty() and len(group) < MAX_GROUP:
                group.append(self._queue.get_nowait())
            try:
                new = await self.run_in_disk_thread(self._insert_group, group)
            except sqlite3.Error as error:
                for each in group:
                    if not each.done.done():
                        each.done.set_exception(error)
                continue
            for each, found in zip(group, new, strict=True):
                self._counts[each.learner] = self._counts.get(each.learner, 0) + len(found)
                # otherwise the connection is closed, so the learner sends the events again
                if not each.done.done():
                    each.done.set_result(found)

    def _insert_group(self, group: Sequence[_PendingPost]) -> list[list[StoredEvent]]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            new = [
                [happened for event in each.events if (happened := self._insert(each, event))]
                for each in group
            ]
            self._db.execute("COMMIT")
            return new
        except BaseException:
            self._db.execute("ROLLBACK")
            raise

    def _insert(self, post: _PendingPost, event: Event) -> StoredEvent | None:
        at = time.time() - 60 * event.minutes
        row = (post.learner, event.id, at, *_columns(event))
        done = self._db.execute(
            "INSERT OR IGNORE INTO events (learner, id, at, kind, exercise, outcome, mistake, code) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            row,
        )
        if not done.rowcount:
            return None
        if isinstance(event, HandEvent):
            # The code of earlier hands is never shown again, and a learner may raise thousands of hands.
            self._db.execute(
                "UPDATE events SET code = '' WHERE learner = ? AND code <> '' AND id <> ?",
                (post.learner, event.id),
            )
        return StoredEvent(post.learner, at, event)

    def close(self) -> None:
        self._disk.shutdown()
        with closing(self._db):
            if self._lock is not None:
                self._lock.close()


@dataclass(frozen=True)
class _PendingPost:
    learner: int
    events: Sequence[Event]
    done: asyncio.Future[list[StoredEvent]]


def _random_text(name: str) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTHS[name]))


def _columns(event: Event) -> tuple[str, str, str, str, str]:
    if isinstance(event, CheckEvent):
        return "checked", event.exercise, event.outcome, event.mistake, ""
    return "up" if event.up else "down", event.exercise, "", "", event.code


def _stored_event(
    learner: int,
    time_s: float,
    id: str,
    kind: str,
    exercise: str,
    outcome: str,
    mistake: str,
    code: str,
) -> StoredEvent:
    if kind == "checked":
        return StoredEvent(learner, time_s, CheckEvent(id, exercise, outcome, mistake))
    return StoredEvent(learner, time_s, HandEvent(id, kind == "up", exercise, code))
