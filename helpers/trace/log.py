"""A rank's records for its launcher: lines in memory that both can see.

    rank r:    Log.write(line) ──> [head | line line line ...]   slice r of one shared memory file
    launcher:  Logs.read(r)    <── copies what is new, whenever it looks

A record costs a rank no system call, wakes nobody, and stays there when a signal ends the rank: what
it was in is known without asking it. A rank's slice is data like all that comes from ranks: copied
out, then read line by line, never trusted.
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
import threading

# Bytes for each rank: some 200,000 calls. Only what is written takes memory.
SLICE = 32 << 20
# How many bytes of lines there are, and how many lines found no room.
_HEAD = struct.Struct("=QQ")
_MOST_AT_ONCE = 8 << 20


class Log:
    """The rank's side of its slice. Any thread may write."""

    def __init__(self, fd: int, rank: int) -> None:
        # Shared with the launcher, which reads on when this process has been killed.
        self._map = mmap.mmap(fd, SLICE, offset=rank * SLICE)
        self._lock = threading.RLock()  # a signal's handler may write in the middle of a write
        self._end = _HEAD.size
        self._lost = 0
        self.open = True

    def write(self, line: bytes) -> None:
        """Append one record, which must not hold a line's end itself."""
        with self._lock:
            start, end = self._end, self._end + len(line) + 1
            # A full slice loses records rather than the rank's time: they are counted.
            if end > SLICE or not self.open:
                self._lost += 1
                end = start
            else:
                self._end = end
                self._map[start:end] = line + b"\n"
            # Last, so that a reader that stops here finds whole lines.
            _HEAD.pack_into(self._map, 0, end - _HEAD.size, self._lost)

    def rewind(self) -> None:
        """Begin again at the front: the launcher has read everything and has said so."""
        with self._lock:
            self._end = _HEAD.size


class Logs:
    """The launcher's side: one file in memory with a slice for each rank of a world."""

    def __init__(self, world_size: int) -> None:
        self.fd = _file_in_memory(world_size * SLICE)
        self._at = [0] * world_size

    def read(self, rank: int) -> list[bytes]:
        """Return the lines that a rank has written since the last call, whole ones only."""
        lines: list[bytes] = []
        if self.fd < 0:
            return lines
        while chunk := self._chunk(rank):
            # A hostile rank may announce any length, and write no line's end: then there is nothing to read.
            whole = chunk.rfind(b"\n") + 1
            if not whole:
                break
            self._at[rank] += whole
            lines += chunk[: whole - 1].split(b"\n")
        return lines

    def news(self, rank: int) -> tuple[int, int, bytes] | None:
        """Return what a rank has written since the last call, to be `put` into another file of this kind.

        The place where it stands, how many records were lost, and the bytes. None if there is nothing.
        """
        start, lost = self._at[rank], self.lost(rank)
        chunk = self._chunk(rank)
        if not chunk:
            return None
        self._at[rank] += len(chunk)
        return start, lost, chunk

    def lost(self, rank: int) -> int:
        """Return how many records of a rank found no room."""
        return int(self._head(rank)[1])

    def rewind_if_full(self) -> bool:
        """Begin again at the front of each slice if one is half full; tell whether the ranks must too.

        Call it between two tasks, when every rank is idle and all that it wrote has been read.
        """
        if max(self._at) < SLICE // 2:
            return False
        self.rewind()
        return True

    def rewind(self) -> None:
        """Begin again at the front of each slice: all ranks are idle."""
        for rank in range(len(self._at)):
            os.pwrite(self.fd, _HEAD.pack(0, 0), rank * SLICE)
            self._at[rank] = 0

    def close(self) -> None:
        """Let the memory go, once the ranks have. Once more does nothing; then there is nothing to read."""
        # The number goes first: a Stop may come in between, and then it may be another file's.
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def _head(self, rank: int) -> tuple[int, ...]:
        # read, not mapped: a file that a rank has cut short would end this process by SIGBUS
        head = os.pread(self.fd, _HEAD.size, rank * SLICE)
        return _HEAD.unpack(head) if len(head) == _HEAD.size else (0, 0)

    def _chunk(self, rank: int) -> bytes:
        end = min(self._head(rank)[0], SLICE - _HEAD.size)
        size = min(end - self._at[rank], _MOST_AT_ONCE)
        if size <= 0:
            return b""
        return os.pread(self.fd, size, rank * SLICE + _HEAD.size + self._at[rank])


def put(fd: int, rank: int, start: int, lost: int, chunk: bytes) -> None:
    """Write a rank's `news` into the file of its launcher."""
    end = start + len(chunk)
    if not 0 <= start <= end <= SLICE - _HEAD.size:
        raise ValueError(f"records beyond the end of a slice: {end}")
    os.pwrite(fd, chunk, rank * SLICE + _HEAD.size + start)
    # Last, as in `Log.write`: a reader that stops in between finds whole lines.
    os.pwrite(fd, _HEAD.pack(end, lost), rank * SLICE)


def _file_in_memory(size: int) -> int:
    """Make a file of that many zero bytes that has no name and takes no room until it is written."""
    if not hasattr(os, "memfd_create"):  # macOS
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
        os.ftruncate(fd, size)
        return fd
    import fcntl

    fd = os.memfd_create("real-ranks", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    # a rank that could let it grow would have memory that no limit of its own counts
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return fd
