"""Run a rank server behind Landlock: a weaker sandbox for machines without bubblewrap.

`levels` chooses this sandbox if the kernel has Landlock. `DOES_NOT_STOP` lists the attacks that it does not
stop.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from helpers.grading.sandbox import landlock
from helpers.grading.sandbox.bubblewrap import LIBRARIES, SYSTEM_CONFIG_PATHS, python_folders
from helpers.grading.sandbox.guard import read_threads
from helpers.grading.sandbox.limits import Limits
from helpers.grading.sandbox.staged import StagedFiles
from helpers.ranks.placement import ServerProcess, SpawnedServer, server_program
from helpers.ranks.scratch import remove_tree

_SYSTEM = (*LIBRARIES, "/proc", "/sys/devices", "/sys/class/net", "/sys/bus/pci")
_ETC = ("hosts", "host.conf", "resolv.conf", "nsswitch.conf", "passwd", "group")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/shm")
# This folder contains torch's shared memory and multiprocessing's locks, so every sandbox needs it.
_SHARED = Path("/dev/shm")
# Some files in /dev/shm have a name only for a moment, while they are being created.
_SETTLE_S = 0.1
# Name prefixes of files that multiprocessing, MPICH and torch leave behind if a rank is killed.
_LIBRARY_PREFIXES = ("sem.mp-", "mpich_shm_", "torch_")
# Time after the creation of such a file in which a process of a different sandbox may still open it by name.
_STARTS_S = 20.0
_SCRATCH = "real-ranks-"

STOPS = (
    "reading or writing files except those of the system and of Python, which are read-only",
    "changing owners, rights and times of any file",
    "signalling or reading processes outside the sandbox (if the kernel's Landlock has version 6 "
    "or later)",
)
DOES_NOT_STOP = (
    "using the network, and sockets of this machine's services, such as Docker's",
    "seeing that other files exist, and seeing other processes with their command lines",
    "reading and writing other users' files in /dev/shm, and filling it or the disk; files left by "
    "an answer are removed after it ends, but answers running at the same time can find them",
    "memory that no process has mapped: buffers of sockets, the files of /dev/shm",
    "smuggling data past a traffic rule while making the expected calls",
)


class LandlockSite:
    """Site of one rank server that can reach only a few files. See `helpers.ranks.placement.Site`."""

    def __init__(self, staged: StagedFiles, limits: Limits) -> None:
        self.root = str(staged.folder)
        self.scratch = tempfile.mkdtemp(prefix=f"{_SCRATCH}{os.getpid()}-")
        self.emptied: tuple[str, ...] = (self.scratch,)
        self.idle_s = 0.0
        self.limits = limits
        self.most_output = limits.output_bytes
        self.most_result, self.most_parts = limits.result_bytes, limits.result_parts
        self.first = 0
        # Files existing before an answer runs belong to other processes, and are kept.
        self._before = frozenset(_private_shm_files())

    def start(
        self, control: int, log: IO[bytes], method: str, env: Mapping[str, str]
    ) -> ServerProcess:
        etc = (*SYSTEM_CONFIG_PATHS, *(f"/etc/{name}" for name in _ETC))
        readable = (*_SYSTEM, *etc, *python_folders(), self.root)
        limits = self.limits.rlimits()
        limits["NPROC"] += read_threads(os.getuid())  # the kernel counts all threads of this user
        prelude = (
            f"import os, sys; os.umask(0o077); sys.path.insert(0, {self.root!r}); "
            "from helpers.grading.sandbox.inside import limit_process; "
            "from helpers.ranks.processes import end_with_parent; "
            # a server stopped by a rank (SIGSTOP) would never notice that its pipe closes
            "end_with_parent(); "
            f"limit_process({limits!r}, {readable!r}, {(*_DEVICES, self.scratch)!r}); "
        )
        path = os.pathsep.join([f"{sys.prefix}/bin", "/usr/bin", "/bin"])
        own = {"PATH": path, "HOME": self.scratch, "TMPDIR": self.scratch, "LANG": "C.UTF-8"}
        program = prelude + server_program(self, control, method)
        process = SpawnedServer(
            program, log, env={**own, **env}, pass_fds=(control,), cwd=self.scratch
        )
        self.first = process.pid
        return process

    def host_pid(self, pid: int) -> int:
        return pid

    def environment(self) -> tuple[dict[str, str], list[str]]:
        return {}, []  # ranks in a sandbox get none of the grader's environment

    def cwd(self) -> str:
        return self.scratch

    def path(self) -> list[str]:
        shown = (*python_folders(), *_SYSTEM)
        return [self.root, *(folder for folder in sys.path if folder.startswith(shown))]

    def sweep(self) -> None:
        """Remove the files left by ranks in /dev/shm.

        A sandbox cannot change its umask, so its files are readable only by their owner, or are links. Files
        are kept if they existed before, if others may read them, or if a process has opened them, because
        other programs of this user may also use /dev/shm. If other sandboxes are running at the same time,
        new files of libraries are kept until no process can be about to open them, because only root can see
        which processes have opened them.
        """
        if not _private_shm_files() - self._before:
            return
        # A semaphore has a name only while it is being created, and removing it at that moment would break
        # its creator.
        time.sleep(_SETTLE_S)
        left = {name for name, _ in _private_shm_files() - self._before}
        left -= _open_shm_files() if left else set()
        if self._has_neighbors():
            left -= {name for name in left if name.startswith(_LIBRARY_PREFIXES) and _is_new(name)}
        for name in left:
            path = _SHARED / name
            if path.is_dir() and not path.is_symlink():
                remove_tree(path)
            else:
                path.unlink(missing_ok=True)

    def _has_neighbors(self) -> bool:
        own = Path(self.scratch)
        return any(path != own for path in own.parent.glob(f"{_SCRATCH}*-*"))

    def close(self) -> None:
        self.sweep()
        shutil.rmtree(self.scratch, ignore_errors=True)


def _private_shm_files() -> set[tuple[str, int]]:
    """Return (name, inode) of this user's files in /dev/shm that others cannot read or that are links."""
    found = set()
    with suppress(OSError), os.scandir(_SHARED) as entries:
        for entry in entries:
            with suppress(OSError):  # the file was removed meanwhile
                told = entry.stat(follow_symlinks=False)
                is_link = stat.S_ISLNK(told.st_mode) or (
                    stat.S_ISREG(told.st_mode) and told.st_nlink > 1
                )
                if told.st_uid == os.geteuid() and (is_link or not told.st_mode & 0o077):
                    found.add((entry.name, told.st_ino))
    return found


def _is_new(name: str) -> bool:
    try:
        return time.time() - (_SHARED / name).lstat().st_ctime < _STARTS_S
    except OSError:
        return False


def _open_shm_files() -> set[str]:
    """Return the names in /dev/shm opened or mapped by processes that this user may see."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            paths = {os.readlink(fd) for fd in (process / "fd").iterdir()}
            paths |= {
                line.partition("/")[2]
                for line in (process / "maps").read_text(encoding="utf-8").split("\n")
            }
            for path in paths:
                if (below := path.lstrip("/").removeprefix("dev/shm/")) != path.lstrip("/"):
                    found.add(below.partition("/")[0])
    return found


def reason_unavailable() -> str:
    """Return "" if Landlock works here, otherwise one line with the reason."""
    try:
        return "" if landlock.abi() else "this kernel has no Landlock"
    except (OSError, AttributeError) as error:
        return f"Landlock does not work here: {error}"
