"""How bubblewrap is called: what a program behind it sees, and whether it works here.

`bubblewrapped` starts the one program that needs it; `levels` asks `why_not` where `bwrap` is installed.
"""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
from pathlib import Path

from helpers.grading.sandbox.staged import Staged

ROOT = "/course"
LIBRARIES = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin")
SETTINGS = (
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
)


def bwrap_words(staged: Staged, info: int) -> list[str]:
    """Return the words before a program: what it sees, and the rights to make namespaces of its own.

    info: a descriptor to which bwrap writes, as JSON, which process it has started.
    """
    words = ["bwrap", "--die-with-parent", "--new-session", "--as-pid-1"]
    for kind in ("ipc", "pid", "net", "uts", "cgroup-try"):
        words.append(f"--unshare-{kind}")
    if os.geteuid():
        # 0 is the user who grades, without any of root's rights. The kernel gives what it shows of a process
        # that may not be dumped (`confine`) to this user: with another number the grader itself could not
        # see in which system calls ranks wait, and would take a deadlock for a function that is slow.
        words += ["--unshare-user", "--uid", "0", "--gid", "0"]
    # These are for the template, which runs only the course's code and must make namespaces, mount,
    # bring up loopback and change user. A rank server drops all of them before it serves.
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
    # /dev is read-only because files there would take memory that no limit of a sandbox counts.
    words += ["--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev", "--tmpfs", "/tmp"]
    for path in python_folders():
        for parent in reversed(Path(path).parents[:-1]):  # as nobody they must be open to all
            words += ["--perms", "0755", "--dir", str(parent)]
        words += ["--ro-bind", path, path]
    # An installed course is among the packages that are shown, and it has the cases and the checks.
    for path in _own_package():
        words += ["--tmpfs", path]
    words += ["--ro-bind", str(staged.folder), ROOT]
    return [*words, "--remount-ro", "/", "--chdir", "/", "--"]


def environment() -> dict[str, str]:
    """Return the environment behind bubblewrap: nothing of the grader's."""
    path = os.pathsep.join([f"{sys.prefix}/bin", "/usr/bin", "/bin"])
    return {"PATH": path, "HOME": "/tmp", "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}


def python_folders() -> list[str]:
    """Return the folders that this Python and its packages are in, as far as /usr does not hold them."""
    found = {sys.prefix, sys.base_prefix, sys.exec_prefix, *site.getsitepackages()}
    found.add(str(Path(sys.executable).resolve().parents[1]))
    kept = [p for p in sorted(found) if os.path.isdir(p) and not p.startswith(LIBRARIES)]
    return [p for p in kept if not any(p != o and p.startswith(f"{o}/") for o in kept)]


def _own_package() -> list[str]:
    """Return where the whole course lies among the packages, if it was installed as one."""
    return [
        folder
        for packages in site.getsitepackages()
        if os.path.isdir(folder := os.path.join(packages, "helpers"))
    ]


def why_not(staged: Staged) -> str:
    """Try it: give "" if it works here, else one line that says why it does not."""
    if shutil.which("bwrap") is None:
        return "bubblewrap (bwrap) is not installed"
    program = (
        f"import sys; sys.path.insert(0, {ROOT!r}); "
        "from helpers.grading.sandbox.template_inside import probe; probe()"
    )
    info, write = os.pipe()
    try:
        done = subprocess.run(
            [*bwrap_words(staged, write), sys.executable, "-P", "-c", program],
            capture_output=True,
            text=True,
            timeout=30,
            pass_fds=(write,),
            env=environment(),
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
