"""A sandbox for one rank server, made by bubblewrap: the strongest walls that the course knows.

    launcher -- control socket, channels --> | bwrap: own network, processes, /tmp; the rest read-only |
                                             |   server, the first process there --fork--> ranks       |

`walls` chooses it where `bwrap` is installed and may make namespaces.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import site
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from helpers.grading.limits import Limits
from helpers.grading.processes import children_of, inner_pid
from helpers.grading.staged import Staged
from helpers.grading.traffic import Counters, counters, traffic_of
from helpers.ranks.site import Traffic

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
_INFO_S = 10.0

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


class Bubblewrap:
    """The site of one rank server within namespaces of its own. See `helpers.ranks.site.Site`.

    slot: a number that no other sandbox has at the same time: as root each gets a user id of its own.
    """

    root = ROOT
    scratch = SCRATCH
    emptied: tuple[str, ...] = ("/tmp", "/dev/shm")

    def __init__(self, staged: Staged, limits: Limits, slot: int = 0) -> None:
        self.staged, self.limits, self.slot = staged, limits, slot
        self.most_output, self.most_result = limits.output_bytes, limits.result_bytes
        self.first = 0
        """The process id, out here, of the first process within."""
        self._info = -1
        self._before = Counters()

    def command(self, source: str) -> list[str]:
        prelude = (
            f"import sys; sys.path.insert(0, {ROOT!r}); import os; os.mkdir({SCRATCH!r}); "
            f"from helpers.grading.inside import confine; confine({self.limits.of_a_process()!r}); "
        )
        return [
            *self._bwrap(),
            "--",
            *_become(self.slot),
            sys.executable,
            "-P",
            "-c",
            prelude + source,
        ]

    def _bwrap(self) -> list[str]:
        words = ["bwrap", "--die-with-parent", "--new-session", "--as-pid-1"]
        for kind in ("ipc", "pid", "net", "uts", "cgroup-try"):
            words.append(f"--unshare-{kind}")
        if os.geteuid():
            words += ["--unshare-user", "--disable-userns", "--uid", str(_NOBODY)]
            words += ["--gid", str(_NOBODY), "--cap-drop", "ALL"]
        words += ["--hostname", "localhost", "--info-fd", str(self._write)]
        for path in LIBRARIES:
            if os.path.islink(path):
                words += ["--symlink", os.readlink(path), path]
            elif os.path.isdir(path):
                words += ["--ro-bind", path, path]
        words += ["--perms", "0755", "--dir", "/etc"]
        for path in SETTINGS:
            words += ["--ro-bind-try", path, path]
        for file in sorted(self.staged.etc.iterdir()):
            words += ["--ro-bind", str(file), f"/etc/{file.name}"]
        size = str(self.limits.disk_bytes)
        words += ["--proc", "/proc", "--dev", "/dev"]
        for folder in ("/dev/shm", "/tmp"):
            words += ["--perms", "1777", "--size", size, "--tmpfs", folder]
        for path in python_folders():
            for parent in reversed(Path(path).parents[:-1]):  # as nobody they must be open to all
                words += ["--perms", "0755", "--dir", str(parent)]
            words += ["--ro-bind", path, path]
        for path in _own_package():
            words += ["--tmpfs", path]
        words += ["--ro-bind", str(self.staged.folder), ROOT]
        return [*words, "--remount-ro", "/", "--chdir", "/tmp"]

    def options(self) -> dict[str, Any]:
        self._info, self._write = os.pipe()
        path = os.pathsep.join([f"{sys.prefix}/bin", "/usr/bin", "/bin"])
        env = {"PATH": path, "HOME": "/tmp", "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
        return {"env": env, "pass_fds": (self._write,)}

    def started(self, pid: int) -> None:
        os.close(self._write)
        said = b""
        with open(self._info, "rb", buffering=0) as info:
            poll = select.poll()
            poll.register(info, select.POLLIN)
            while not said.rstrip().endswith(b"}") and poll.poll(_INFO_S * 1000):
                if not (chunk := info.read(4096)):
                    break
                said += chunk
        with suppress(ValueError, KeyError, TypeError):
            self.first = int(json.loads(said)["child-pid"])

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
            return traffic_of(pids, self._before)
        except PermissionError:  # some systems let nobody but root look
            return None
        except OSError as error:
            return Traffic(problem=str(error.strerror or error))

    def cwd(self) -> str:
        return "/tmp"

    def path(self) -> list[str]:
        shown = (*python_folders(), *LIBRARIES)
        return [ROOT, *(folder for folder in sys.path if folder.startswith(shown))]

    def close(self) -> None:
        pass


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


def _become(slot: int) -> list[str]:
    """As root, let the program go on as a user who owns nothing and may do nothing."""
    if os.geteuid():
        return []
    user = str(FIRST_USER + slot)
    words = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--no-new-privs"]
    return [*words, "--inh-caps=-all", "--bounding-set=-all"]


def why_not(staged: Staged) -> str:
    """Try it: give "" if it works here, else one line that says why it does not."""
    if shutil.which("bwrap") is None:
        return "bubblewrap (bwrap) is not installed"
    site_ = Bubblewrap(staged, Limits())
    options = site_.options()
    program = (
        "import helpers.ranks.server, socket; socket.socket().bind(('127.0.0.1', 0)); print('ok')"
    )
    try:
        done = subprocess.run(
            site_.command(program), capture_output=True, text=True, timeout=30, **options
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not work here: {error}"
    finally:
        site_.started(0)
    if done.stdout.strip() == "ok":
        return ""
    last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
    return f"bubblewrap does not work here: {last[:200]}"
