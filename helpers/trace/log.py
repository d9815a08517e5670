"""A rank's records for its launcher: lines in shared memory.

    rank r:    Log.write(line) ──> [head | line line line ...]   slice r of one shared memory file
    launcher:  Logs.read(r)    <── copies the new lines, at each look

If the launcher confirms the bytes that it has read (`Logs(confirms=True)`), a slice is a ring: in a run that
takes hours, new records replace those already read. Otherwise a full slice only counts further records.

A record costs the rank no system call, wakes no process, and remains if a signal kills the rank. So a rank's
current call is known without asking it. Like all data from ranks, a slice is not trusted: it is copied, and
then read line by line.
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
import threading

# Bytes for each rank, enough for about 200,000 calls. Only written pages use memory.
SLICE_BYTES = 32 << 20
# The number of written bytes of lines, and the number of lines that did not fit.
_HEADER = struct.Struct("=QQ")
# The number of bytes read by the launcher, if it confirms them; otherwise 0.
_CONFIRMED = struct.Struct("=Q")
_LINES_AT = _HEADER.size + _CONFIRMED.size
_MAX_READ_BYTES = 8 << 20


class Log:
    """The rank's side of its slice. Any thread may write."""

    def __init__(self, fd: int, rank: int) -> None:
        # The memory is shared with the launcher, which can still read it after this process was killed.
        self._map = mmap.mmap(fd, SLICE_BYTES, offset=rank * SLICE_BYTES)
        self._lock = threading.RLock()  # A signal handler may write while this thread is writing.
        # The numbers of written bytes, and of bytes whose reading was confirmed.
        self._written = self._confirmed = 0
        self._lost = 0
        self.open = True

    def write(self, line: bytes) -> None:
        """Append one record, which must not contain a line end."""
        with self._lock:
            if not self.open or not self._has_room(len(line) + 1):
                # Only count the record, so that the rank is not delayed.
                self._lost += 1
            else:
                self._put(line + b"\n")
            # Update the head last, so that a reader sees only complete lines.
            _HEADER.pack_into(self._map, 0, self._written, self._lost)

    def _has_room(self, count: int) -> bool:
        if self._written + count - self._confirmed > _capacity():
            (self._confirmed,) = _CONFIRMED.unpack_from(self._map, _HEADER.size)
        return self._written + count - self._confirmed <= _capacity()

    def _put(self, data: bytes) -> None:
        start = self._written % _capacity()
        first = data[: _capacity() - start]
        self._map[_LINES_AT + start : _LINES_AT + start + len(first)] = first
        if rest := data[len(first) :]:
            self._map[_LINES_AT : _LINES_AT + len(rest)] = rest
        self._written += len(data)

    def rewind(self) -> None:
        """Write from the start again. Call this only when the launcher has read everything."""
        with self._lock:
            self._written = self._confirmed = 0


class Logs:
    """The launcher's side: one file in memory, with a slice for each rank of a world.

    confirms: whether ranks may overwrite records that have been read.
    """

    def __init__(self, world_size: int, confirms: bool = False) -> None:
        self._confirms = confirms
        self.fd = _create_memory_file(world_size * SLICE_BYTES)
        self._positions = [0] * world_size

    def read(self, rank: int) -> list[bytes]:
        """Return the complete lines that a rank has written since the last call."""
        lines: list[bytes] = []
        if self.fd < 0:
            return lines
        while chunk := self._read_chunk(rank):
            # A hostile rank may announce any length without a line end. In this case, read nothing.
            complete_bytes = chunk.rfind(b"\n") + 1
            if not complete_bytes:
                break
            self._positions[rank] += complete_bytes
            lines += chunk[: complete_bytes - 1].split(b"\n")
            if self._confirms:
                at = rank * SLICE_BYTES + _HEADER.size
                os.pwrite(self.fd, _CONFIRMED.pack(self._positions[rank]), at)
        return lines

    def read_new(self, rank: int) -> tuple[int, int, bytes] | None:
        """Return a rank's bytes since the last call, for `write_new` into another file of this kind.

        The result is the position of the bytes, the number of lost records, and the bytes. It is None if
        there are no new bytes.
        """
        start, lost = self._positions[rank], self.lost_count(rank)
        chunk = self._read_chunk(rank)
        if not chunk:
            return None
        self._positions[rank] += len(chunk)
        return start, lost, chunk

    def lost_count(self, rank: int) -> int:
        """Return the number of a rank's records that did not fit."""
        return int(self._read_header(rank)[1])

    def rewind_if_full(self) -> bool:
        """Reset all slices if one is half full. Return whether the ranks must also reset their logs.

        Call it between two tasks, when every rank is idle and all its records have been read.
        """
        if max(self._positions) < SLICE_BYTES // 2:
            return False
        self.rewind()
        return True

    def rewind(self) -> None:
        """Reset all slices. Every rank must be idle."""
        for rank in range(len(self._positions)):
            os.pwrite(self.fd, _HEADER.pack(0, 0), rank * SLICE_BYTES)
            self._positions[rank] = 0

    def close(self) -> None:
        """Free the memory when the ranks have ended. May be called again; `read` then returns nothing."""
        # Forget the descriptor first: after a Stop between the two steps, its number may soon belong to
        # another file.
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def _read_header(self, rank: int) -> tuple[int, ...]:
        # Read the file instead of mapping it: if a rank has truncated it, a mapping would end this
        # process by SIGBUS.
        header = os.pread(self.fd, _HEADER.size, rank * SLICE_BYTES)
        return _HEADER.unpack(header) if len(header) == _HEADER.size else (0, 0)

    def _read_chunk(self, rank: int) -> bytes:
        position, capacity = self._positions[rank], _capacity()
        end = self._read_header(rank)[0]
        # Without confirmations, a slice holds the first lines.
        size = (
            min(end if self._confirms else min(end, capacity), position + _MAX_READ_BYTES)
            - position
        )
        size = min(size, capacity)
        if size <= 0:
            return b""
        lines_at, start = rank * SLICE_BYTES + _LINES_AT, position % capacity
        chunk = os.pread(self.fd, min(size, capacity - start), lines_at + start)
        return chunk + (
            os.pread(self.fd, size - len(chunk), lines_at) if len(chunk) < size else b""
        )


def write_new(fd: int, rank: int, start: int, lost: int, chunk: bytes) -> None:
    """Write the result of a rank's `read_new` into the file of its launcher."""
    end = start + len(chunk)
    if not 0 <= start <= end <= _capacity():
        raise ValueError(f"records beyond the end of a slice: {end}")
    os.pwrite(fd, chunk, rank * SLICE_BYTES + _LINES_AT + start)
    # Update the head last, as in `Log.write`, so that a reader sees only whole lines.
    os.pwrite(fd, _HEADER.pack(end, lost), rank * SLICE_BYTES)


def _capacity() -> int:
    """Return the number of bytes of lines that fit into a slice."""
    return SLICE_BYTES - _LINES_AT


def _create_memory_file(size: int) -> int:
    """Create a nameless file filled with zero bytes, which takes no memory until it is written."""
    if not hasattr(os, "memfd_create"):  # macOS
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
        os.ftruncate(fd, size)
        return fd
    import fcntl

    fd = os.memfd_create("real-ranks", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    # If a rank could enlarge the file, it would have memory that is not counted by any limit.
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return fd
