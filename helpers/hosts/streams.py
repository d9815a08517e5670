"""All that a kernel and one of its hosts say to each other, as frames in one stream of bytes.

    kernel                                                          host
    rank server's socket  ─┐                                    ┌─ rank server's socket
    each rank's channel   ─┼─ Streams ══ one connection ══ Streams ─┼─ each rank's channel
    each rank's output    ─┘                                    └─ each rank's output, records

Both ends are `Streams`: `near.Near` in the kernel, `agent.Agent` on the host. Of each rank, what it sends
arrives in the order in which the rank wrote it: output and records before the answer that follows them, and
all of it before the word that the rank has ended.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

# A frame: what it is, the launch and the rank that it belongs to (0 where it belongs to none), its length.
_HEADER = struct.Struct("!BIII")
COUNT = struct.Struct("!Q")
# CONTROL: a message of or to the rank server. ASK, ANSWER: a question of the kernel's to the agent. CHANNEL,
# OUTPUT, RECORDS: bytes of a rank. END: no more bytes come from this end of its channel. TAKEN: how many
# bytes of a rank have reached their end. BEAT: nothing else had to be said. GONE: the rank
# server has ended, and these were its last words.
CONTROL, ASK, ANSWER, CHANNEL, OUTPUT, RECORDS, END, TAKEN, BEAT, GONE = range(1, 11)

# Bytes of a rank that may be under way and not taken yet: a rank that prints fast, while nobody reads what it
# prints, waits as it would at a full pipe.
WINDOW = 4 << 20
_CHUNK = 1 << 16
_LONGEST = 64 << 20
# Above this many bytes that wait to be sent, nothing more is read from ranks.
_MOST_WAITING = 8 << 20
# Each end says something this often. An end that hears nothing for so long takes the other for gone: a cut
# cable closes no connection. Both are seconds.
_BEAT_S, SILENCE_S = 1.0, 10.0

_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


@dataclass
class Rank:
    """One rank's descriptors at this end.

    output: a pipe, read on the host and written in the kernel. todo: what is to be written, in order, and
    to which descriptor; or what is to be called when all before it has been written. under_way: bytes that
    were sent and that the other end has not taken. taken: bytes written here that it does not know of yet.
    """

    launch: int
    rank: int
    channel: socket.socket
    output: int
    reads_output: bool
    todo: deque[tuple[int, memoryview] | Callable[[], None]] = field(default_factory=deque)
    under_way: int = 0
    taken: int = 0
    # Whether bytes may still come from the channel, and from the pipe.
    channel_open: bool = True
    output_open: bool = True


class Streams:
    """One end. `serve` runs in one thread; `send` may be called from any."""

    def __init__(self, link: socket.socket) -> None:
        link.setblocking(False)
        self.link = link
        self.ranks: dict[tuple[int, int], Rank] = {}
        self._selector = selectors.DefaultSelector()
        self._out: deque[memoryview] = deque()
        self._waiting = 0
        self._in = bytearray()
        self._lock = threading.Lock()
        self._calls: list[Callable[[], None]] = []
        self._thread = 0
        self._wake, self._woken = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._woken, False)
        self._heard_at = self._said_at = time.monotonic()
        self.closed = False
        self.watch(self._wake, _READ, self._awake)

    # --- for the two ends -------------------------------------------------------------------------

    def heard(self, kind: int, launch: int, rank: int, body: bytes) -> None:
        """Take a frame that is for this end alone."""
        raise NotImplementedError

    def before_channel(self, rank: Rank) -> None:
        """Send what a rank wrote before the bytes of its channel that have just been read."""

    def on_silence(self) -> None:
        """Take note that nothing has been heard of the other end for `SILENCE_S`."""

    def call_soon(self, call: Callable[[], None]) -> None:
        """Have the serving thread call something."""
        with self._lock:
            self._calls.append(call)
            self._wake_up()

    def send(self, kind: int, launch: int = 0, rank: int = 0, body: bytes = b"") -> None:
        """Send a frame, after all others. Never waits."""
        data = _HEADER.pack(kind, launch, rank, len(body)) + body
        with self._lock:
            self._out.append(memoryview(data))
            self._waiting += len(data)
            if threading.get_native_id() != self._thread:
                self._wake_up()

    def watch(self, fd: int, mask: int, call: Callable[[int], None]) -> None:
        """Have `call(events)` called when a descriptor is ready as `mask` says; 0: not any more."""
        key = self._selector.get_map().get(fd)
        if key is None:
            if mask:
                self._selector.register(fd, mask, call)
        elif not mask:
            self._selector.unregister(fd)
        elif key.events != mask:
            self._selector.modify(fd, mask, call)

    def add(self, rank: Rank) -> None:
        rank.channel.setblocking(False)
        os.set_blocking(rank.output, False)
        self.ranks[rank.launch, rank.rank] = rank
        self._attend(rank)

    def drop(self, launch: int) -> None:
        """Close all that belongs to the ranks of a launch."""
        for key in [key for key in self.ranks if key[0] == launch]:
            rank = self.ranks.pop(key)
            self.watch(rank.channel.fileno(), 0, _nothing)
            self.watch(rank.output, 0, _nothing)
            rank.channel.close()
            os.close(rank.output)

    def serve(self) -> None:
        """Carry bytes until the link closes, falls silent, or an end raises EOFError."""
        self._thread = threading.get_native_id()
        try:
            while True:
                self.watch(self.link.fileno(), _READ | (_WRITE if self._out else 0), self._at_link)
                for key, events in self._selector.select(_BEAT_S / 2):
                    if key.fd in self._selector.get_map():  # what came before may have dropped it
                        key.data(events)
                self._beat()
        except (EOFError, OSError, ValueError):
            pass
        finally:
            self.shut()

    def shut(self) -> None:
        for launch, _ in list(self.ranks):
            self.drop(launch)
        self._selector.close()
        self.link.close()
        with (
            self._lock
        ):  # another thread may be about to write there, when the number is another file's
            self.closed = True
            os.close(self._wake)
            os.close(self._woken)

    def write(self, rank: Rank, fd: int, data: bytes) -> None:
        """Write to one of a rank's descriptors, after all that is to be written before."""
        rank.todo.append((fd, memoryview(data)))
        self._write(rank)

    def after(self, rank: Rank, call: Callable[[], None]) -> None:
        """Call when all has been written that was to be written until now."""
        rank.todo.append(call)
        self._write(rank)

    def take_output(self, rank: Rank) -> None:
        """Send what is in a rank's pipe: at most what a pipe holds."""
        if rank.output_open:
            try:
                data = os.read(rank.output, _CHUNK)
            except BlockingIOError:
                return
            rank.output_open = bool(data)
            self._forward(OUTPUT, rank, data)

    def take_channel(self, rank: Rank) -> None:
        """Send what has come on a rank's channel, and before it what the rank wrote earlier."""
        if not rank.channel_open:
            return
        try:
            data = rank.channel.recv(_CHUNK)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        self.before_channel(rank)
        self._forward(CHANNEL, rank, data)
        if not data:
            rank.channel_open = False
            self.send(END, rank.launch, rank.rank)

    # --- within -----------------------------------------------------------------------------------

    def _awake(self, events: int) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake, 4096)
        with self._lock:
            calls, self._calls = self._calls, []
        for call in calls:
            call()

    def _wake_up(self) -> None:
        if not self.closed:
            with contextlib.suppress(BlockingIOError):  # full: it will wake anyway
                os.write(self._woken, b"x")

    def _beat(self) -> None:
        now = time.monotonic()
        if now - self._said_at > _BEAT_S:
            self._said_at = now
            self.send(BEAT)
        if now - self._heard_at > SILENCE_S:
            self.on_silence()
            raise EOFError("silence")

    def _at_link(self, events: int) -> None:
        if events & _WRITE:
            self._write_link()
        if events & _READ:
            self._read_link()

    def _write_link(self) -> None:
        while self._out:
            try:
                sent = self.link.send(self._out[0])
            except BlockingIOError:
                return
            with self._lock:
                self._waiting -= sent
                if sent == len(self._out[0]):
                    self._out.popleft()
                else:
                    self._out[0] = self._out[0][sent:]
            self._said_at = time.monotonic()
        for rank in self.ranks.values():  # they may have had to wait for this
            self._attend(rank)

    def _read_link(self) -> None:
        try:
            data = self.link.recv(1 << 18)
        except BlockingIOError:
            return
        if not data:
            raise EOFError("the link has closed")
        self._heard_at = time.monotonic()
        self._in += data
        start = 0
        while len(self._in) - start >= _HEADER.size:
            kind, launch, rank, length = _HEADER.unpack_from(self._in, start)
            if length > _LONGEST:
                raise ValueError("no frame of ours is so long")
            end = start + _HEADER.size + length
            if len(self._in) < end:
                break
            body = bytes(memoryview(self._in)[start + _HEADER.size : end])
            start = end
            self._take(kind, launch, rank, body)
        del self._in[:start]

    def _take(self, kind: int, launch: int, number: int, body: bytes) -> None:
        if kind == BEAT:
            return
        if kind not in {CHANNEL, OUTPUT, END, TAKEN}:
            self.heard(kind, launch, number, body)
            return
        rank = self.ranks.get((launch, number))
        if rank is None:  # its launch has ended here
            return
        if kind == CHANNEL:
            self.write(rank, rank.channel.fileno(), body)
        elif kind == OUTPUT:
            self.write(rank, rank.output, body)
        elif kind == END:
            self.after(rank, lambda: _shut(rank.channel))
        else:
            rank.under_way -= COUNT.unpack(body)[0]
            self._attend(rank)

    def _forward(self, kind: int, rank: Rank, data: bytes) -> None:
        if data:
            rank.under_way += len(data)
            self.send(kind, rank.launch, rank.rank, data)

    def _write(self, rank: Rank) -> None:
        """Write what is to be written for a rank, as far as its descriptors take it."""
        while rank.todo:
            step = rank.todo[0]
            if not isinstance(step, tuple):
                rank.todo.popleft()
                step()
                continue
            fd, data = step
            try:
                done = os.write(fd, data)
            except BlockingIOError:
                break
            except OSError:  # nobody reads this any more
                done = len(data)
            rank.taken += done
            if done == len(data):
                rank.todo.popleft()
            else:
                rank.todo[0] = fd, data[done:]
        if rank.taken >= WINDOW // 4:
            self.send(TAKEN, rank.launch, rank.rank, COUNT.pack(rank.taken))
            rank.taken = 0
        self._attend(rank)

    def _attend(self, rank: Rank) -> None:
        """Wait for what a rank's descriptors can do next."""
        if (rank.launch, rank.rank) not in self.ranks:
            return
        step = rank.todo[0] if rank.todo else None
        target = step[0] if isinstance(step, tuple) else -1
        reads = rank.under_way < WINDOW and self._waiting < _MOST_WAITING
        channel = rank.channel.fileno()
        mask = _READ * (reads and rank.channel_open) | _WRITE * (target == channel)
        self.watch(channel, mask, lambda events: self._at_channel(rank, events))
        mask = _READ * (reads and rank.reads_output and rank.output_open)
        mask |= _WRITE * (target == rank.output)
        self.watch(rank.output, mask, lambda events: self._at_output(rank, events))

    def _at_channel(self, rank: Rank, events: int) -> None:
        if events & _WRITE:
            self._write(rank)
        if events & _READ:
            self.take_channel(rank)
            self._attend(rank)

    def _at_output(self, rank: Rank, events: int) -> None:
        if events & _READ and rank.reads_output:
            self.take_output(rank)
            self._attend(rank)
        elif events & _WRITE:
            self._write(rank)


def _shut(channel: socket.socket) -> None:
    with contextlib.suppress(OSError):
        channel.shutdown(socket.SHUT_WR)


def _nothing(events: int) -> None:
    pass
