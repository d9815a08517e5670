"""A set of ranks that are alive: their channels, what they print, what they say, how they ended.

The launcher makes a `World`, gives it a task and pumps it until every rank has answered; `%%ranks`
keeps one from cell to cell. `end` is always called, and leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from helpers.ranks import wire
from helpers.ranks.cells import is_learner_file, place_of
from helpers.ranks.connection import HUGE_PAGES, Connection, ServerGone
from helpers.ranks.failures import LaunchError, RankError
from helpers.ranks.site import Traffic
from helpers.trace.collector import Collector
from helpers.trace.events import Place

MAX_OUTPUT = 100_000
"""Characters kept of what one rank prints in one launch."""
RECORDS = frozenset({"call", "wait", "end", "group"})
"""The kinds of record that the collector takes; no other word of a rank reaches it."""
FLOOD = "Flood"
"""The kind of error of a rank that printed more than its site allows."""


@dataclass
class Member:
    """One rank, as its launcher sees it."""

    rank: int
    sock: socket.socket
    output_fd: int
    reader: wire.FrameReader = field(default_factory=wire.FrameReader)
    pid: int = 0
    state: str = "running"
    """"running", "returned", "failed" or "died"."""
    value: Any = None
    error: RankError | None = None
    exitcode: int | None = None
    ended_ns: int = 0
    fault: str = ""
    """What Python wrote about its threads when a signal ended it."""
    at: Place | None = None
    inside: str = ""
    _text: list[bytes] = field(default_factory=list)
    _kept: int = 0
    printed: int = 0
    """Bytes, those included that were not kept."""
    cut: bool = False

    @property
    def done(self) -> bool:
        return self.state != "running"

    def add_output(self, data: bytes) -> None:
        self.printed += len(data)
        room = MAX_OUTPUT - self._kept
        if room > 0:
            self._text.append(data[:room])
            self._kept += len(self._text[-1])
        self.cut = self.cut or len(data) > room

    @property
    def output(self) -> str:
        text = b"".join(self._text).decode("utf-8", "replace")
        if self.cut:
            text += f"\n... (cut here: only the first {MAX_OUTPUT:,} bytes of a rank's output are kept)\n"
        return text


@dataclass(frozen=True)
class Setting:
    """How the ranks of a world are set up; the same for all tasks that the world is given."""

    world_size: int
    backend: str = "gloo"
    init: bool = True
    trace: bool = True
    env: tuple[Mapping[str, str], ...] = ()
    place_of: Callable[[str, int, str], Place] = place_of
    """Names a line for the reader, from what a rank calls its file, line and function."""


class World:
    """Ranks that are alive. Use under the connection's lock; call `end` in a `finally`."""

    def __init__(self, connection: Connection, setting: Setting) -> None:
        self.connection = connection
        self.setting = setting
        self.launch = connection.new_launch()
        self.members: list[Member] = []
        self.server_gone = False
        self.ended = False
        self.traffic: Traffic | None = None
        self.collector = Collector(setting.world_size, setting.place_of)
        self._selector = selectors.DefaultSelector()
        self._selector.register(connection, selectors.EVENT_READ, None)
        self._fresh = True
        self.folder = f"{connection.site.scratch}/world-{self.launch}"

    def start(self) -> None:
        """Ask the server for the ranks. Raise LaunchError when there are no descriptors for them."""
        ends: list[tuple[int, int]] = []
        theirs: list[socket.socket] = []
        try:
            for rank in range(self.setting.world_size):
                mine, other = socket.socketpair()
                theirs.append(other)
                limits = {**wire.MAX_BYTES, wire.RESULT: self.connection.site.most_result}
                member = Member(rank, mine, -1, wire.FrameReader(limits))
                self.members.append(member)
                member.output_fd, write = os.pipe()
                ends.append((other.fileno(), write))
                os.set_blocking(member.output_fd, False)
                self._selector.register(mine, selectors.EVENT_READ, (member, self._read_channel))
                self._selector.register(
                    member.output_fd, selectors.EVENT_READ, (member, self._read_output)
                )
            self.connection.start_ranks(self.launch, self.folder, ends)
        except ServerGone:
            self.server_gone = True
        except OSError as error:
            raise LaunchError(
                f"{self.setting.world_size} ranks could not be started: {error.strerror or error}. "
                "`course doctor` tells how many this machine allows."
            ) from None
        finally:
            for other in theirs:
                other.close()
            for _, write in ends:
                os.close(write)

    def give(self, heads: Sequence[Mapping[str, Any]], payloads: Sequence[Sequence[bytes]]) -> None:
        """Send each rank its task. The first one also tells it who it is."""
        self.collector = self.collector.next()
        for member, head, payload in zip(self.members, heads, payloads, strict=True):
            member.state, member.value, member.error = "running", None, None
            member._text, member._kept, member.cut = [], 0, False
            full = {**self._identity(member.rank), **head} if self._fresh else dict(head)
            text = json.dumps(full).encode()
            member.sock.settimeout(30.0)
            with contextlib.suppress(OSError):  # it died: its exit, not this, tells how
                wire.send_frame(member.sock, wire.TASK, wire.LENGTH.pack(len(text)), text, *payload)
            member.sock.setblocking(False)
        self._fresh = False

    def _identity(self, rank: int) -> dict[str, Any]:
        setting = self.setting
        size = str(setting.world_size)
        env = {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": size,
            "LOCAL_WORLD_SIZE": size,
        }
        env |= setting.env[rank] if setting.env else {}
        return {
            "rank": rank,
            "world_size": setting.world_size,
            "backend": setting.backend,
            "init": setting.init,
            "trace": setting.trace,
            "env": env,
            "unset": [name for name in HUGE_PAGES if name not in os.environ],
            "store": f"{self.folder}/store",
            "temp": f"{self.folder}/rank-{rank}",
            "cwd": self.connection.site.cwd(),
            "path": self.connection.site.path(),
        }

    def pump(self, wait_s: float) -> None:
        """Take in what ranks and server have to say, waiting at most `wait_s` for the first word."""
        if self.connection.has_word_for(self.launch):  # read while another world was pumped
            self._hear_server()
        for key, _ in self._selector.select(wait_s):
            if key.data is None:
                self._hear_server()
            else:
                member, read = key.data
                read(member)

    def _hear_server(self) -> None:
        try:
            messages = self.connection.messages(self.launch)
        except ServerGone:
            self._selector.unregister(self.connection)
            self.server_gone = True
            return
        for word, values in messages:
            member = self.members[values[0]]
            if word == "started":
                member.pid = values[1]
            elif word == "exit":
                member.fault = str(values[2])
                self._left(member, values[1])
            else:
                raise LaunchError(
                    f"rank {member.rank} could not be started: {values[1]}. "
                    "`course doctor` tells how many ranks this machine allows."
                )

    def _left(self, member: Member, exitcode: int) -> None:
        self._read_output(member)
        self._read_channel(member)  # its last words may still be on the way
        member.exitcode = exitcode
        if not member.done:
            member.state, member.ended_ns = "died", time.monotonic_ns()

    def _read_output(self, member: Member) -> None:
        try:
            while data := os.read(member.output_fd, 1 << 16):
                member.add_output(data)
                if 0 < self.connection.site.most_output < member.printed:
                    most = self.connection.site.most_output
                    said = f"it printed more than {most:,} bytes, and was ended"
                    self._fail(member, RankError(member.rank, FLOOD, said))
                    return
                if len(data) < 1 << 16:
                    return
        except BlockingIOError:
            return
        except OSError:
            pass
        self._forget(member.output_fd)

    def _read_channel(self, member: Member) -> None:
        try:
            for kind, body in member.reader.feed_from(member.sock):
                self._hear(member, kind, body)
        except BlockingIOError:
            return
        except (EOFError, ConnectionError):
            self._forget(member.sock)
        except (
            Exception
        ) as error:  # whatever a hostile rank provokes is one thing: not a word of ours
            self._forget(member.sock)
            self._fail(member, RankError(member.rank, "WireError", str(error)[:200]))

    def _hear(self, member: Member, kind: int, body: bytearray) -> None:
        if kind == wire.EVENTS:
            for record in json.loads(body):
                self._take(member.rank, record)
        elif kind == wire.STATUS:
            status = json.loads(body)
            member.at = self.collector.place(status["at"])
            member.inside = str(status["inside"])[:80]
        elif kind == wire.RESULT and not member.done:
            member.value = wire.decode(body)
            member.state, member.ended_ns = "returned", time.monotonic_ns()
        elif kind == wire.ERROR and not member.done:
            self._fail(member, self._read_error(member.rank, json.loads(body)))

    def _take(self, rank: int, record: Any) -> None:
        known = isinstance(record, list) and record and record[0] in RECORDS
        try:
            self.collector.feed(rank, record if known else None)
        except (OverflowError, RecursionError):  # no place in time, or no text, is so large
            self.collector.dropped += 1

    def _fail(self, member: Member, error: RankError) -> None:
        if not member.done:
            member.state, member.error, member.ended_ns = "failed", error, error.when_ns

    def _forget(self, source: Any) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(source)

    def fault_frames(self, rank: int) -> tuple[Place, ...]:
        """Give the learner's lines on which a rank was when a signal ended it, outermost first."""
        with contextlib.suppress(ValueError):
            lines = self.members[rank].fault.splitlines()
            found = [self._fault_line(line) for line in lines if line.startswith('  File "')]
            return tuple(p for p in reversed(found) if self._is_learners(p.file))[-5:]
        return ()

    def dismiss(self) -> None:
        """Let ranks go that have all answered. The server ends them while the caller goes on."""
        try:
            self.connection.dismiss_launch(self.launch)
        except ServerGone:
            self.end()
        else:
            self._close()

    def end(self) -> None:
        """End every rank and all that they made, and wait for it; remove what the world used."""
        try:
            if not self.connection.end_launch(self.launch):
                self._end_without_server()
        finally:
            self._close()

    def _close(self) -> None:
        try:
            for member in self.members:
                if member.output_fd >= 0:
                    self._read_output(member)
        finally:
            self._selector.close()
            for member in self.members:
                member.sock.close()
                if member.output_fd >= 0:
                    os.close(member.output_fd)
                    member.output_fd = -1
            self.ended = True

    def _end_without_server(self) -> None:
        for member in self.members:
            if member.pid and member.exitcode is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(member.pid, signal.SIGKILL)

    def _is_learners(self, file: str) -> bool:
        engine = f"{self.connection.site.root}/helpers/"  # where ranks see it, behind walls
        return is_learner_file(file) and not file.startswith(engine)

    def _read_error(self, rank: int, said: dict[str, Any]) -> RankError:
        place = self.setting.place_of
        own = [
            place(str(file), int(line), str(function))
            for file, line, function in said["frames"][:60]
            if self._is_learners(str(file))
        ]
        kind, message = str(said["kind"])[:200], str(said["message"])[:20_000]
        return RankError(rank, kind, message, tuple(own[-8:]), int(said["when_ns"]))

    def _fault_line(self, line: str) -> Place:
        file, _, rest = line.removeprefix('  File "').partition('", line ')
        number, _, function = rest.partition(" in ")
        return self.setting.place_of(file, int(number), function)
