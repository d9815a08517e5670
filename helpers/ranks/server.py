"""The rank server: imports torch once, then forks ranks in milliseconds.

    launcher ==control socket==> server --fork--> rank 0, rank 1, ...   (each in a separate session)
                 start, end             <--SIGCHLD--
             <== started, exit, ended

The server is a process next to the kernel, in a separate session. It never runs a learner's code: a rank
receives its task after the fork, through a channel from the launcher. When the control socket closes, the
server exits, and kills every process started by its ranks. If fork is unsafe (macOS), the server starts each
rank as a new interpreter instead.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import stat
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from helpers.ranks import preload
from helpers.ranks.json_messages import MAX_FDS, Messages
from helpers.ranks.processes import (
    adopt_orphans,
    children_of,
    end_process_groups,
    end_with_parent,
    kill_orphan,
)
from helpers.ranks.scratch import empty_folder, remove_tree

# Time limit in seconds for killing processes left behind by ranks, which may continue to fork.
_ORPHANS_TIMEOUT_S = 10.0
START_FAILED_EXIT_CODE = 70
"""The exit code of a process that could not become a rank."""


def main(
    fd: int,
    start_method: str,
    folder: str,
    folders_to_empty: tuple[str, ...] = (),
    idle_s: float = 0.0,
) -> None:
    """Serve the launcher at the other end of `fd` until it closes. Then remove `folder`.

    Args:
        fd: The server's end of the control socket.
        start_method: "fork" or "spawn".
        folder: The folder for the files of all worlds.
        folders_to_empty: Folders used only by ranks. They are emptied when a launch has ended.
        idle_s: The server exits after this many seconds without a request; 0 means never.
    """
    control = Messages(socket.socket(fileno=fd), MAX_FDS)
    server = _Server(control, start_method, (folder, folders_to_empty), idle_s)
    try:
        server.prepare()
        server.serve()
    except (EOFError, ConnectionError):
        pass
    finally:
        server.end_all_launches()
        remove_tree(Path(folder))  # The launcher may have died before it could remove the folder.


@dataclass
class _Server:
    control: Messages
    start_method: str
    # The folder of all worlds, and the folders to empty when a launch has ended.
    world_folders: tuple[str, tuple[str, ...]]
    idle_s: float = 0.0
    # process id -> (launch, rank)
    ranks: dict[int, tuple[int, int]] = field(default_factory=dict)
    # launch -> the folder with its files
    folders: dict[int, Path] = field(default_factory=dict)
    # launch -> a socket that reserves its MASTER_PORT as long as the ranks run
    ports: dict[int, socket.socket] = field(default_factory=dict)
    _wakeup_fd: int = -1

    def prepare(self) -> None:
        """Import the modules that every rank needs, then report that the server is ready."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ranks could send this signal.
        # `site.SpawnedServer` blocks SIGINT until this line, so that a Stop cannot end the server before it
        # ignores the signal.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        adopt_orphans()  # including the processes that a rank leaves behind when it ends
        self._wakeup_fd, write = os.pipe()
        # select() continues after a signal handler has run (PEP 475), and misses a signal that arrived just
        # before the call. So let Python write a byte to this pipe at each signal, which wakes select().
        os.set_blocking(self._wakeup_fd, False)
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        if self.start_method == "fork":
            preload.import_all()
        self.control.send({"ready": True})

    def serve(self) -> None:
        while True:
            timeout_s = self.idle_s if self.idle_s and not self.ranks else None
            readable, _, _ = select.select(
                [self.control.fileno(), self._wakeup_fd], [], [], timeout_s
            )
            if not readable:
                return  # If the reader is idle, free memory is more useful than a fast next launch.
            if self._wakeup_fd in readable:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wakeup_fd, 4096)
                self.reap_ranks()
            if self.control.fileno() in readable:
                for message in self.control.receive():
                    self.handle_message(message)

    def handle_message(self, message: dict[str, Any]) -> None:
        if message["do"] == "start":
            folder = self.folders[message["launch"]] = Path(message["folder"])
            log = self.control.fds.pop(0)
            for rank in message["ranks"]:
                fd, output = self.control.fds.pop(0), self.control.fds.pop(0)
                try:
                    folder.mkdir(exist_ok=True)
                    pid = self._start((fd, output, log), self._port_of(message["launch"]))
                    self.ranks[pid] = (message["launch"], rank)
                    self.control.send({"started": [message["launch"], rank, pid]})
                except OSError as error:
                    self.control.send({"refused": [message["launch"], rank, str(error)]})
                finally:
                    os.close(fd)
                    os.close(output)
            os.close(log)
        elif message["do"] == "end":
            self.end_launch(message["launch"])
            if "quietly" not in message:  # Otherwise the launcher is not waiting.
                self.control.send({"ended": message["launch"]})
        elif message["do"] == "preload":
            preload.preload()
            self.control.send({"preloaded": True})
        elif message["do"] == "import" and self.start_method == "fork":
            preload.preload(message["names"])

    def _port_of(self, launch: int) -> int:
        """Return the port for a store of a launch's ranks, reserved as by `ports.held_port`.

        The server chooses the port, because a sandbox's ports belong to a different network than the
        launcher's.
        """
        if launch not in self.ports:
            listener = self.ports[launch] = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", 0))
        return int(self.ports[launch].getsockname()[1])

    def _start(self, fds: tuple[int, ...], port: int) -> int:
        """Start a rank with these descriptors: its channel, its output, and its world's log."""
        if self.start_method == "spawn":
            command = [sys.executable, "-m", "helpers.ranks.worker", *map(str, fds)]
            root = str(Path(__file__).parents[2])
            path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
            return subprocess.Popen(
                command,
                pass_fds=fds,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": path, "MASTER_PORT": str(port)},
            ).pid
        # This is safe because this process has only one thread: no other thread can hold a lock that the
        # child needs.
        server = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                os.environ["MASTER_PORT"] = str(port)
                self._become_rank(fds, server)
            finally:
                os._exit(
                    START_FAILED_EXIT_CODE
                )  # Never return into the server's loop, not even after an exception.
        return pid

    def _become_rank(self, fds: tuple[int, ...], server: int) -> None:
        os.setsid()  # Create a separate group, so that one signal ends all processes started by the rank.
        # Otherwise signals of this process would wake the server, which shares the pipe.
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        end_with_parent()
        if os.getppid() != server:  # The server died before end_with_parent took effect.
            os._exit(START_FAILED_EXIT_CODE)
        gc.enable()
        importlib.import_module("helpers.ranks.worker").start(*fds)

    def reap_ranks(self) -> None:
        """Report the exit of each ended rank, and end the processes that it left behind."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self.ranks:
                launch, rank = self.ranks.pop(pid)
                end_process_groups({pid}, self.ranks)
                code = os.waitstatus_to_exitcode(status)
                fault = _read_fault(self.folders[launch] / f"rank-{rank}") if code < 0 else ""
                self.control.send({"exit": [launch, rank, code, fault]})

    def end_launch(self, launch: int) -> None:
        """End all ranks of a launch, and all processes started by them."""
        # Signal all ranks before waiting for the first, because each needs some time to free its memory.
        pids = {pid for pid, (owner, _) in self.ranks.items() if owner == launch}
        end_process_groups(pids, self.ranks.keys() - pids)
        for pid, (owner, _) in list(self.ranks.items()):
            if owner == launch:
                os.waitpid(pid, 0)
                del self.ranks[pid]
        self._end_orphans()
        if launch in self.ports:
            self.ports.pop(launch).close()
        if launch in self.folders:
            remove_tree(self.folders.pop(launch))
        if not self.ranks:
            folder, folders_to_empty = self.world_folders
            for path in folders_to_empty:
                empty_folder(Path(path), kept_folder=Path(folder))
                Path(folder).mkdir(exist_ok=True)  # A rank may have replaced the file.

    def end_all_launches(self) -> None:
        end_process_groups(self.ranks)
        for pid in self.ranks:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
        self.ranks.clear()
        self._end_orphans()

    def _end_orphans(self) -> None:
        """End processes adopted by this process because their rank has ended."""
        # This process is the first one of its sandbox, so kill all other processes there.
        if os.getpid() == 1 and not self.ranks:
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
        deadline = time.monotonic() + _ORPHANS_TIMEOUT_S
        while time.monotonic() < deadline:  # Killing a process can uncover its children.
            orphans = set(children_of(os.getpid())) - set(self.ranks)
            if not orphans:
                return
            for pid in orphans:
                kill_orphan(pid)
            for pid in orphans:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)


def _read_fault(folder: Path) -> str:
    """Read faulthandler's text about a rank killed by a signal. Ignore anything but a regular file."""
    with contextlib.suppress(OSError):
        fd = os.open(folder / "fault", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if stat.S_ISREG(os.fstat(fd).st_mode):
                return os.read(fd, 64 << 10).decode("utf-8", "replace")
        finally:
            os.close(fd)
    return ""
