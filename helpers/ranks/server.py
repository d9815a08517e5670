"""The rank server: imports torch once, then forks ranks in milliseconds.

    launcher ==control socket==> server --fork--> rank 0, rank 1, ...   (each a session of its own)
                 start, end             <--SIGCHLD--
             <== started, exit, ended

A process of its own session beside the kernel. It never runs anybody's code: a rank receives what
it is to do through its own channel, after the fork. It ends when its control socket closes, and
every process that its ranks made ends with it. Where fork is unsafe (macOS) it starts each rank as
a new interpreter instead.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import select
import signal
import socket
import stat
import struct
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from helpers.ranks import warm
from helpers.ranks.scratch import empty, remove_tree

LENGTH = struct.Struct("!I")
MAX_MESSAGE = 1 << 20
MAX_FDS = 240
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def main(fd: int, start_method: str, folder: str, emptied: tuple[str, ...] = ()) -> None:
    """Serve the launcher at the other end of `fd` until it goes away; then remove its `folder`.

    emptied: folders that nobody but the ranks uses, to be empty again when a launch has ended.
    """
    control = socket.socket(fileno=fd)
    server = _Server(control, start_method, (folder, emptied))
    try:
        server.warm_up()
        server.serve()
    except (EOFError, ConnectionError):
        pass
    finally:
        server.end_all()
        remove_tree(Path(folder))  # the launcher may have died without doing so


@dataclass
class _Server:
    control: socket.socket
    start_method: str
    own: tuple[str, tuple[str, ...]]
    """The folder of all worlds, and those to empty when a launch has ended."""
    ranks: dict[int, tuple[int, int]] = field(default_factory=dict)
    """process id -> (launch, rank)"""
    folders: dict[int, Path] = field(default_factory=dict)
    """launch -> the folder with its files"""
    _fds: list[int] = field(default_factory=list)
    _buffer: bytearray = field(default_factory=bytearray)
    _wake: int = -1
    _todo: list[str] = field(default_factory=list)
    """Modules that are yet to be preloaded."""

    def warm_up(self) -> None:
        """Import what every rank needs, then say so."""
        self._libc = ctypes.CDLL(None, use_errno=True)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a rank may send what it likes
        if sys.platform == "linux":
            # what a rank leaves behind when it ends becomes our child, so that we can end it
            self._libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._wake, write = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        if self.start_method == "fork":
            warm.import_all()
            self._todo = list(warm.PRELOAD)
        self._say(ready=True)

    def serve(self) -> None:
        while True:
            idle = 0.2 if self._todo else None
            readable, _, _ = select.select([self.control.fileno(), self._wake], [], [], idle)
            if self._wake in readable:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake, 4096)
                self.reap()
            if self.control.fileno() in readable:
                for message in self._receive():
                    self.obey(message)
            if not readable and not self.ranks:
                self.preload(1)

    def preload(self, count: int) -> None:
        """Import the next `count` modules that ranks are likely to want."""
        warm.preload(self._todo[:count])
        del self._todo[:count]

    def obey(self, message: dict[str, Any]) -> None:
        if message["do"] == "start":
            folder = self.folders[message["launch"]] = Path(message["folder"])
            for rank in message["ranks"]:
                fd, output = self._fds.pop(0), self._fds.pop(0)
                try:
                    folder.mkdir(exist_ok=True)
                    pid = self._start(fd, output)
                    self.ranks[pid] = (message["launch"], rank)
                    self._say(started=[message["launch"], rank, pid])
                except OSError as error:
                    self._say(refused=[message["launch"], rank, str(error)])
                finally:
                    os.close(fd)
                    os.close(output)
        elif message["do"] == "end":
            self.end(message["launch"])
            if "quietly" not in message:  # else the launcher does not wait
                self._say(ended=message["launch"])
        elif message["do"] == "preload":
            self.preload(len(self._todo))
            self._say(preloaded=True)

    def _start(self, fd: int, output: int) -> int:
        if self.start_method == "spawn":
            command = [sys.executable, "-m", "helpers.ranks.worker", str(fd), str(output)]
            root = str(Path(__file__).parents[2])
            path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
            return subprocess.Popen(
                command,
                pass_fds=(fd, output),
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": path},
            ).pid
        server = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                self._become_rank(fd, output, server)
            finally:
                os._exit(70)
        return pid

    def _become_rank(self, fd: int, output: int, server: int) -> None:
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if sys.platform == "linux":
            self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != server:  # it died before we could ask to die with it
                os._exit(70)
        gc.enable()
        importlib.import_module("helpers.ranks.worker").start(fd, output)

    def reap(self) -> None:
        """Tell the launcher how each ended rank ended, and end what that rank left behind."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self.ranks:
                launch, rank = self.ranks.pop(pid)
                _kill_group(pid)
                code = os.waitstatus_to_exitcode(status)
                fault = _fault(self.folders[launch] / f"rank-{rank}") if code < 0 else ""
                self._say(exit=[launch, rank, code, fault])

    def end(self, launch: int) -> None:
        """End all ranks of a launch, and every process that they made."""
        for pid, (of, _) in list(self.ranks.items()):
            if of == launch:
                _kill_group(pid)
        for pid, (of, _) in list(self.ranks.items()):
            if of == launch:
                os.waitpid(pid, 0)
                del self.ranks[pid]
        self._end_orphans()
        if launch in self.folders:
            remove_tree(self.folders.pop(launch))
        if not self.ranks:
            folder, emptied = self.own
            for each in emptied:
                empty(Path(each), keep=Path(folder))
                Path(folder).mkdir(exist_ok=True)  # a rank may have put something else there

    def end_all(self) -> None:
        for pid in self.ranks:
            _kill_group(pid)
        for pid in self.ranks:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
        self.ranks.clear()
        self._end_orphans()

    def _end_orphans(self) -> None:
        """End processes that became our children because the rank that made them has gone."""
        if os.getpid() == 1 and not self.ranks:  # alone behind walls: nobody else is left here
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
        for _ in range(100):  # each round can uncover the children of those it ended
            orphans = _children() - set(self.ranks)
            if not orphans:
                return
            for pid in orphans:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for pid in orphans:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)

    def _say(self, **message: Any) -> None:
        text = json.dumps(message).encode()
        self.control.sendall(LENGTH.pack(len(text)) + text)

    def _receive(self) -> list[dict[str, Any]]:
        data, fds, _, _ = socket.recv_fds(self.control, 1 << 16, MAX_FDS)
        if not data:
            raise EOFError
        self._fds += fds
        self._buffer += data
        return list(take_messages(self._buffer))


def take_messages(buffer: bytearray) -> list[dict[str, Any]]:
    """Take the whole messages off the front of `buffer`."""
    messages = []
    while len(buffer) >= LENGTH.size:
        (length,) = LENGTH.unpack_from(buffer)
        if len(buffer) < LENGTH.size + length:
            break
        messages.append(json.loads(buffer[LENGTH.size : LENGTH.size + length]))
        del buffer[: LENGTH.size + length]
    return messages


def _kill_group(pid: int) -> None:
    for kill in (os.killpg, os.kill):  # the group is not there yet in the first moment of its life
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def _fault(folder: Path) -> str:
    """Read what faulthandler wrote for a rank that a signal ended; whatever else lies there is no file."""
    with contextlib.suppress(OSError):
        fd = os.open(folder / "fault", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if stat.S_ISREG(os.fstat(fd).st_mode):
                return os.read(fd, 64 << 10).decode("utf-8", "replace")
        finally:
            os.close(fd)
    return ""


def _children() -> set[int]:
    found: set[int] = set()
    for path in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found.update(int(pid) for pid in path.read_text().split())
    return found
