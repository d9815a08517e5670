"""The board's file: an SQLite database in WAL mode. What was acknowledged is on the disk.

Each post of a class waits for the disk, and a disk takes milliseconds to sync. So posts are stored in groups:

    posts -> queue -> one writer: all that wait, in one transaction -> sync -> answers
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from helpers.room.messages import Checked, Event, Hand

MOST_IN_A_GROUP = 500
MOST_EVENTS = 50_000
"""Of one learner: a hundred times what the whole course takes. Further ones are refused."""
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
"""
_ALPHABET = "bcdfghjkmnpqrstvwxyz23456789"  # no letters that are taken for others, and no words


class Full(Exception):
    """A learner has sent more than anyone does."""


@dataclass(frozen=True)
class Learner:
    """Somebody who has joined. token: the SHA-256 of the secret that is only on the learner's machine."""

    id: int
    name: str
    token: bytes


@dataclass(frozen=True)
class Happened:
    """An event that is on the disk. at: seconds since the epoch, by the board's clock."""

    learner: int
    at: float
    event: Event


def digest(token: str) -> bytes:
    """Return what the board keeps of a token: it is long and random, so a plain hash will do."""
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()


class Store:
    """The database, open. All but `add` is quick and called from one thread before or between writes."""

    def __init__(self, path: Path) -> None:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # names of learners are in it
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        # WAL with FULL: a commit returns once it is on the disk, and a kill at any time loses nothing of it.
        self._db.executescript(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;" + _SCHEMA
        )
        self._queue: asyncio.Queue[_Waiting] = asyncio.Queue()
        self._busy = asyncio.Lock()
        counts = self._db.execute("SELECT learner, count(*) FROM events GROUP BY learner")
        self._counts: dict[int, int] = dict(counts.fetchall())

    def setting(self, name: str, length: int) -> str:
        """Return a secret of the room that is made once and then kept: its code, the teacher's key."""
        made = "".join(secrets.choice(_ALPHABET) for _ in range(length))
        self._db.execute("INSERT OR IGNORE INTO settings VALUES (?, ?)", (name, made))
        row = self._db.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
        return str(row[0])

    def learners(self) -> list[Learner]:
        """Return all who have joined, in the order in which they came."""
        rows = self._db.execute("SELECT id, name, token FROM learners ORDER BY id")
        return [Learner(*row) for row in rows]

    def happened(self) -> list[Happened]:
        """Return all events in the order in which they were stored."""
        rows = self._db.execute(
            "SELECT learner, at, id, kind, exercise, outcome, mistake, code FROM events ORDER BY number"
        )
        return [_happened(*row) for row in rows]

    async def join(self, name: str, token: str, user: str | None = None) -> Learner:
        """Store a learner. user: the login, if JupyterHub knows it: the same one is the same learner."""
        async with self._busy:
            return await asyncio.to_thread(self._join, name, digest(token), user)

    def _join(self, name: str, token: bytes, user: str | None) -> Learner:
        row = self._db.execute(
            "INSERT INTO learners (name, token, user) VALUES (?, ?, ?) ON CONFLICT (user) DO UPDATE SET "
            "name = excluded.name, token = excluded.token RETURNING id, name, token",
            (name, token, user),
        ).fetchone()
        return Learner(*row)

    async def rename(self, learner: Learner, name: str) -> Learner:
        """Call a learner otherwise from now on."""
        async with self._busy:
            change = ("UPDATE learners SET name = ? WHERE id = ?", (name, learner.id))
            await asyncio.to_thread(self._db.execute, *change)
        return Learner(learner.id, name, learner.token)

    async def add(self, learner: int, events: Sequence[Event]) -> list[Happened]:
        """Store a learner's events; return those that are new, once they are on the disk.

        Raise Full, or sqlite3.Error where the disk is full.
        """
        if self._counts.get(learner, 0) + len(events) > MOST_EVENTS:
            raise Full
        done = asyncio.get_running_loop().create_future()
        await self._queue.put(_Waiting(learner, events, done))
        found: list[Happened] = await done
        return found

    async def write(self) -> None:
        """Store what `add` has been given, group by group, until cancelled."""
        while True:
            group = [await self._queue.get()]
            while not self._queue.empty() and len(group) < MOST_IN_A_GROUP:
                group.append(self._queue.get_nowait())
            try:
                async with self._busy:
                    new = await asyncio.to_thread(self._add, group)
            except sqlite3.Error as error:
                for each in group:
                    if not each.done.done():
                        each.done.set_exception(error)
                continue
            for each, found in zip(group, new, strict=True):
                self._counts[each.learner] = self._counts.get(each.learner, 0) + len(found)
                if not each.done.done():  # else the connection is gone: it will be sent again
                    each.done.set_result(found)

    def _add(self, group: Sequence[_Waiting]) -> list[list[Happened]]:
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

    def _insert(self, each: _Waiting, event: Event) -> Happened | None:
        at = time.time() - 60 * event.minutes
        row = (each.learner, event.id, at, *_columns(event))
        done = self._db.execute(
            "INSERT OR IGNORE INTO events (learner, id, at, kind, exercise, outcome, mistake, code) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            row,
        )
        return Happened(each.learner, at, event) if done.rowcount else None

    def close(self) -> None:
        with closing(self._db):
            pass


@dataclass(frozen=True)
class _Waiting:
    learner: int
    events: Sequence[Event]
    done: asyncio.Future[list[Happened]]


def _columns(event: Event) -> tuple[str, str, str, str, str]:
    if isinstance(event, Checked):
        return "checked", event.exercise, event.outcome, event.mistake, ""
    return "up" if event.up else "down", event.exercise, "", "", event.code


def _happened(
    learner: int,
    at: float,
    id: str,
    kind: str,
    exercise: str,
    outcome: str,
    mistake: str,
    code: str,
) -> Happened:
    if kind == "checked":
        return Happened(learner, at, Checked(id, exercise, outcome, mistake))
    return Happened(learner, at, Hand(id, kind == "up", exercise, code))
