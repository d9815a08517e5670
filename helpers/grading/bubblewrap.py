"""A sandbox for one rank server, made by bubblewrap: the strongest walls that the course knows.

    launcher -- control socket, channels --> | bwrap: a read-only system, no network      |
                                             |   template --fork--> | own network, /tmp   |
                                             |                      |   server -> ranks   |

`walls` chooses it where `bwrap` is installed and may make namespaces.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import site
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from helpers.grading.limits import Limits
from helpers.grading.processes import children_of, end, inner_pid
from helpers.grading.staged import Staged
from helpers.grading.traffic import Counters, counters, traffic_of
from helpers.ranks.connection import rank_settings
from helpers.ranks.failures import LaunchError
from helpers.ranks.server import LENGTH, take_messages
from helpers.ranks.site import Process, Traffic

ROOT = "/course"
SCRATCH = "/tmp/worlds"
_NOBODY = 65_534
FIRST_USER = 61_184
"""A range that systemd leaves for "dynamic" users: nobody owns files there."""
LIBRARIES = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin")
SETTINGS = (
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
)
_ANSWER_S = 60.0

STOPS = (
    "reading or writing any file but the system's and Python's own, which are read-only",
    "the network, but for its own loopback",
    "seeing or signalling processes outside, and what they have in memory",
    "leaving a process behind",
)
DOES_NOT_STOP = (
    "an attack on the kernel itself",
    "talking past a rule on traffic by files or memory, behind a show of the right calls",
)


class Template:
    """The process behind bubblewrap that forks rank servers (`helpers.grading.template`), from outside.

    Used by one thread. Ends with the thread that made it, or by `close`.
    """

    def __init__(self, staged: Staged) -> None:
        self.owner = os.getpid()
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (for the process's life)
        self._control, theirs = socket.socketpair()
        self._control.settimeout(_ANSWER_S)
        self._buffer = bytearray()
        program = (
            f"import sys; sys.path.insert(0, {ROOT!r}); "
            f"from helpers.grading.template import main; main({theirs.fileno()})"
        )
        info, write = os.pipe()
        with theirs:
            self._process = subprocess.Popen(
                [*_bwrap(staged, write), sys.executable, "-P", "-c", program],
                pass_fds=(theirs.fileno(), write),
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                start_new_session=True,
                env={**_environment(), **rank_settings()},
            )
        os.close(write)
        self._first = _first_process(info)
        self._preloaded = False

    @property
    def alive(self) -> bool:
        return self.owner == os.getpid() and self._process.poll() is None

    def fork(self, asked: Mapping[str, Any], control: int, log: int) -> int:
        """Have a rank server made in namespaces of its own; give its process id out here.

        control: the server's end of its control socket. log: takes what it prints. Raise LaunchError.
        """
        keeper = self._asked(asked, [control, log], "keeper")
        deadline = time.monotonic() + _ANSWER_S
        while time.monotonic() < deadline:
            for child in children_of(self._first):
                if inner_pid(child) == keeper:
                    for first in children_of(child):
                        return first
            time.sleep(0.001)
        raise LaunchError(f"the rank server did not start: {self._words()}")

    def preload(self) -> None:
        """Have it import what the later notebooks need, once for all servers to come."""
        if not self._preloaded:
            self._asked({"preload": True}, [], "preloaded")
            self._preloaded = True

    def close(self) -> None:
        """End it, and all servers that it has made."""
        self._control.close()
        if self.alive:
            os.killpg(self._process.pid, signal.SIGKILL)
        if self.owner == os.getpid():
            self._process.wait(5.0)
        self._log.close()

    def _asked(self, message: Mapping[str, Any], fds: list[int], word: str) -> int:
        """Ask, and wait for the answer of that name. Raise LaunchError."""
        text = json.dumps(message).encode()
        data = LENGTH.pack(len(text)) + text
        try:
            sent = socket.send_fds(self._control, [data], fds)
            self._control.sendall(data[sent:])
            while True:
                for said in take_messages(self._buffer):
                    if word in said:
                        return int(said[word])
                data = self._control.recv(4096)
                if not data:
                    raise EOFError("it has gone")
                self._buffer += data
        except (OSError, EOFError) as error:
            raise LaunchError(f"no rank server could be made ({error}): {self._words()}") from None

    def _words(self) -> str:
        self._log.seek(0)
        return self._log.read()[-500:].decode(errors="replace").strip() or "it said nothing"


class _Forked:
    """A rank server that a template made: nobody's child out here."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._handle = -1
        with suppress(ProcessLookupError):
            self._handle = os.pidfd_open(pid)

    def poll(self) -> int | None:
        return 0 if self._ended(0.0) else None

    def wait(self, timeout: float) -> int:
        if not self._ended(timeout):
            raise subprocess.TimeoutExpired("rank server", timeout)
        return 0

    def kill(self) -> None:
        end(self.pid)

    def _ended(self, within_s: float) -> bool:
        if self._handle < 0:
            return True
        poll = select.poll()
        poll.register(self._handle, select.POLLIN)
        if not poll.poll(within_s * 1000):
            return False
        os.close(self._handle)
        self._handle = -1
        return True


class Bubblewrap:
    """The site of one rank server within namespaces of its own. See `helpers.ranks.site.Site`.

    slot: a number that no other grader has at the same time: as root each gets a user id of its own.
    """

    root = ROOT
    scratch = SCRATCH
    emptied: tuple[str, ...] = ("/tmp", "/dev/shm")

    def __init__(self, template: Template, limits: Limits, slot: int = 0) -> None:
        self.template, self.limits, self.slot = template, limits, slot
        self.most_output, self.most_result = limits.output_bytes, limits.result_bytes
        self.first = 0
        """The process id, out here, of the first process within."""
        self._before = Counters()

    def start(self, control: int, log: IO[bytes], method: str, env: Mapping[str, str]) -> Process:
        asked = {
            "limits": self.limits.of_a_process(),
            "disk_bytes": self.limits.disk_bytes,
            "user": 0 if os.geteuid() else FIRST_USER + self.slot,
            "folder": SCRATCH,
            "emptied": self.emptied,
            "kept": [path for path in python_folders() if path.startswith(("/tmp/", "/dev/shm/"))],
        }
        self.first = self.template.fork(asked, control, log.fileno())
        return _Forked(self.first)

    def outside(self, pid: int) -> int:
        for child in children_of(self.first):
            if inner_pid(child) == pid:
                return child
        return 0

    def starting(self) -> None:
        with suppress(OSError):
            self._before = counters(self.first)

    def traffic(self, pids: Sequence[int]) -> Traffic | None:
        try:
            return traffic_of(pids, self._before, self.limits.open_files)
        except PermissionError:  # some systems let nobody look but root
            return None
        except OSError as error:
            return Traffic(problem=str(error.strerror or error))

    def cwd(self) -> str:
        return "/tmp"

    def path(self) -> list[str]:
        shown = (*python_folders(), *LIBRARIES)
        return [ROOT, *(folder for folder in sys.path if folder.startswith(shown))]

    def close(self) -> None:
        end(self.first)  # and with the first process all others within


def _bwrap(staged: Staged, info: int) -> list[str]:
    """Give the words before a program: what it sees, and the rights to make namespaces of its own."""
    words = ["bwrap", "--die-with-parent", "--new-session", "--as-pid-1"]
    for kind in ("ipc", "pid", "net", "uts", "cgroup-try"):
        words.append(f"--unshare-{kind}")
    if os.geteuid():
        words += ["--unshare-user", "--uid", str(_NOBODY), "--gid", str(_NOBODY)]
    for right in ("SYS_ADMIN", "NET_ADMIN", "SETUID", "SETGID", "SETPCAP"):
        words += ["--cap-add", f"CAP_{right}"]
    words += ["--hostname", "localhost", "--info-fd", str(info)]
    for path in LIBRARIES:
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            words += ["--ro-bind", path, path]
    words += ["--perms", "0755", "--dir", "/etc"]
    for path in SETTINGS:
        words += ["--ro-bind-try", path, path]
    for file in sorted(staged.etc.iterdir()):
        words += ["--ro-bind", str(file), f"/etc/{file.name}"]
    words += ["--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev", "--tmpfs", "/tmp"]
    for path in python_folders():
        for parent in reversed(Path(path).parents[:-1]):  # as nobody they must be open to all
            words += ["--perms", "0755", "--dir", str(parent)]
        words += ["--ro-bind", path, path]
    for path in _own_package():
        words += ["--tmpfs", path]
    words += ["--ro-bind", str(staged.folder), ROOT]
    return [*words, "--remount-ro", "/", "--chdir", "/", "--"]


def _environment() -> dict[str, str]:
    path = os.pathsep.join([f"{sys.prefix}/bin", "/usr/bin", "/bin"])
    return {"PATH": path, "HOME": "/tmp", "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}


def _first_process(info: int) -> int:
    """Read what bwrap tells of itself: the process id of the program, out here."""
    said = b""
    with open(info, "rb", buffering=0) as pipe:
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        while not said.rstrip().endswith(b"}") and poll.poll(_ANSWER_S * 1000):
            if not (chunk := pipe.read(4096)):
                break
            said += chunk
    with suppress(ValueError, KeyError, TypeError):
        return int(json.loads(said)["child-pid"])
    return 0


def python_folders() -> list[str]:
    """Give the folders that this Python and its packages are in, as far as /usr does not hold them."""
    found = {sys.prefix, sys.base_prefix, sys.exec_prefix, *site.getsitepackages()}
    found.add(str(Path(sys.executable).resolve().parents[1]))
    kept = [p for p in sorted(found) if os.path.isdir(p) and not p.startswith(LIBRARIES)]
    return [p for p in kept if not any(p != o and p.startswith(f"{o}/") for o in kept)]


def _own_package() -> list[str]:
    """Give where the whole course lies among the packages, if it was installed as one."""
    return [
        folder
        for packages in site.getsitepackages()
        if os.path.isdir(folder := os.path.join(packages, "helpers"))
    ]


def why_not(staged: Staged) -> str:
    """Try it: give "" if it works here, else one line that says why it does not."""
    if shutil.which("bwrap") is None:
        return "bubblewrap (bwrap) is not installed"
    program = f"import sys; sys.path.insert(0, {ROOT!r}); from helpers.grading.template import probe; probe()"
    info, write = os.pipe()
    try:
        done = subprocess.run(
            [*_bwrap(staged, write), sys.executable, "-P", "-c", program],
            capture_output=True,
            text=True,
            timeout=30,
            pass_fds=(write,),
            env=_environment(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not work here: {error}"
    finally:
        os.close(info)
        os.close(write)
    if done.stdout.strip() == "ok":
        return ""
    last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
    return f"bubblewrap does not work here: {last[:200]}"
