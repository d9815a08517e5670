"""Carry all messages between a kernel and one of its hosts as frames in one stream of bytes.

    kernel                                                                    host
    rank server's socket  ─┐                                                ┌─ rank server's socket
    each rank's channel   ─┼─ Multiplexer ══ one connection ══ Multiplexer ─┼─ each rank's channel
    each rank's output    ─┘                                                └─ each rank's output, records

Both ends are a `Multiplexer`: `link.HostLink` in the kernel, `agent.Agent` on the host. The bytes of a rank
arrive in the order in which it wrote them: output and records before the answer that follows them, and all
of them before the message that the rank has exited.
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

# A frame's header: its kind, its launch and rank (0 if it belongs to none), and its length.
_HEADER = struct.Struct("!BIII")
COUNT = struct.Struct("!Q")
# CONTROL: a message from or to the rank server. ASK, ANSWER: the kernel's question to the agent, and its
# answer. CHANNEL, OUTPUT, RECORDS: bytes of a rank. END: no more bytes come from this end of its channel.
# TAKEN: how many bytes of a rank the other end has written. BEAT: keeps the connection alive if there is
# nothing else to send. GONE: the rank server has exited; contains the end of its log.
CONTROL, ASK, ANSWER, CHANNEL, OUTPUT, RECORDS, END, TAKEN, BEAT, GONE = range(1, 11)

# Maximum bytes of a rank that are sent but not yet taken. If its output is not read, a rank that prints
# fast blocks, as it would at a full pipe.
WINDOW = 4 << 20
_CHUNK = 1 << 16
_LONGEST = 64 << 20
# If more bytes than this wait to be sent, nothing more is read from ranks.
_MOST_WAITING = 8 << 20
# Both in seconds. Each end sends something at least every `_BEAT_S`. After `SILENCE_S` without a frame, an
# end assumes that the other one is gone, because a cut cable closes no connection.
_BEAT_S, SILENCE_S = 1.0, 10.0

_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


@dataclass
class Rank:
    """One rank's descriptors at this end.

    Args:
        output: A pipe, read on the host and written in the kernel.
        todo: What to do next, in order: (descriptor, bytes to write), or a function to call once everything
            before it has been written.
        under_way: Bytes that were sent and that the other end has not taken yet.
        taken: Bytes written here that have not been reported to the other end yet.
    """

    launch: int
    rank: int
    channel: socket.socket
    output: int
    reads_output: bool
    todo: deque[tuple[int, memoryview] | Callable[[], None]] = field(default_factory=deque)
    under_way: int = 0
    taken: int = 0
    # Whether more bytes may come from the channel, and from the pipe.
    channel_open: bool = True
    output_open: bool = True


class Multiplexer:
    """One end of the stream. `serve` runs in one thread; `send` may be called from any."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sock = sock
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
        """Handle a frame that is meant for this end alone."""
        raise NotImplementedError

    def before_channel(self, rank: Rank) -> None:
        """Send what a rank wrote before the bytes that were just read from its channel."""

    def on_silence(self) -> None:
        """Handle that the other end has sent nothing for `SILENCE_S`."""

    def call_soon(self, call: Callable[[], None]) -> None:
        """Call a function in the serving thread."""
        with self._lock:
            self._calls.append(call)
            self._wake_up()

    def send(self, kind: int, launch: int = 0, rank: int = 0, body: bytes = b"") -> None:
        """Queue a frame after all others. Never blocks."""
        data = _HEADER.pack(kind, launch, rank, len(body)) + body
        with self._lock:
            self._out.append(memoryview(data))
            self._waiting += len(data)
            if threading.get_native_id() != self._thread:
                self._wake_up()

    def watch(self, fd: int, mask: int, call: Callable[[int], None]) -> None:
        """Call `call(events)` whenever a descriptor is ready for `mask`. If `mask` is 0, stop doing so."""
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
        """Close all descriptors of a launch's ranks."""
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
                self.watch(self.sock.fileno(), _READ | (_WRITE if self._out else 0), self._at_link)
                for key, events in self._selector.select(_BEAT_S / 2):
                    if key.fd in self._selector.get_map():  # an earlier event may have removed it
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
        self.sock.close()
        # another thread may be about to write: once closed, the descriptor's number may be a different
        # file's
        with self._lock:
            self.closed = True
            os.close(self._wake)
            os.close(self._woken)

    def write(self, rank: Rank, fd: int, data: bytes) -> None:
        """Write to one of a rank's descriptors, after everything that was queued before."""
        rank.todo.append((fd, memoryview(data)))
        self._write(rank)

    def after(self, rank: Rank, call: Callable[[], None]) -> None:
        """Call a function once everything that was queued before has been written."""
        rank.todo.append(call)
        self._write(rank)

    def take_output(self, rank: Rank) -> None:
        """Send what is in a rank's pipe, at most one chunk."""
        if rank.output_open:
            try:
                data = os.read(rank.output, _CHUNK)
            except BlockingIOError:
                return
            rank.output_open = bool(data)
            self._forward(OUTPUT, rank, data)

    def take_channel(self, rank: Rank) -> None:
        """Send what has arrived on a rank's channel, and before it what the rank wrote earlier."""
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
            # the pipe is full, so the thread wakes anyway
            with contextlib.suppress(BlockingIOError):
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
                sent = self.sock.send(self._out[0])
            except BlockingIOError:
                return
            with self._lock:
                self._waiting -= sent
                if sent == len(self._out[0]):
                    self._out.popleft()
                else:
                    self._out[0] = self._out[0][sent:]
            self._said_at = time.monotonic()
        for rank in self.ranks.values():  # they may have been waiting for room
            self._attend(rank)

    def _read_link(self) -> None:
        try:
            data = self.sock.recv(1 << 18)
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
        """Write a rank's queued bytes until a descriptor would block."""
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
            except OSError:  # the reader has closed its end
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
        """Watch a rank's descriptors for what they can do next."""
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
