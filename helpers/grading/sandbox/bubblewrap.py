"""Build the command line of bubblewrap, and test whether bubblewrap works here.

`bubblewrapped` starts one program behind bubblewrap. `levels` calls `reason_unavailable`.
"""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
from pathlib import Path

from helpers.grading.sandbox.staged import StagedFiles

ROOT = "/course"
LIBRARIES = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin")
SYSTEM_CONFIG_PATHS = (
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
)


def bwrap_words(staged: StagedFiles, info: int) -> list[str]:
    """Return the words that precede the program: bwrap, the visible files, and rights to create namespaces.

    info: a descriptor to which bwrap writes the id of the started process, as JSON.
    """
    words = ["bwrap", "--die-with-parent", "--new-session", "--as-pid-1"]
    for kind in ("ipc", "pid", "net", "uts", "cgroup-try"):
        words.append(f"--unshare-{kind}")
    if os.geteuid():
        # User 0 is the person who grades, without root's privileges. `limit_process` makes ranks undumpable,
        # and the kernel then shows their state only to this user. With a different number, the grader could
        # not see the system calls in which ranks wait, and would mistake a deadlock for a slow function.
        words += ["--unshare-user", "--uid", "0", "--gid", "0"]
    # The template needs these rights, because it must make namespaces, mount, bring up loopback and change
    # the user. It runs only the course's code, and a rank server drops all of the rights before it serves.
    for right in ("SYS_ADMIN", "NET_ADMIN", "SETUID", "SETGID", "SETPCAP"):
        words += ["--cap-add", f"CAP_{right}"]
    words += ["--hostname", "localhost", "--info-fd", str(info)]
    for path in LIBRARIES:
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            words += ["--ro-bind", path, path]
    words += ["--perms", "0755", "--dir", "/etc"]
    for path in SYSTEM_CONFIG_PATHS:
        words += ["--ro-bind-try", path, path]
    for file in sorted(staged.etc.iterdir()):
        words += ["--ro-bind", str(file), f"/etc/{file.name}"]
    # /dev is read-only because its files would take memory that no limit of a sandbox counts.
    words += ["--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev", "--tmpfs", "/tmp"]
    for path in python_folders():
        # parent folders must be open to all users, including nobody
        for parent in reversed(Path(path).parents[:-1]):
            words += ["--perms", "0755", "--dir", str(parent)]
        words += ["--ro-bind", path, path]
    # Hide an installed course, because it is one of the visible packages and contains the cases and the
    # checks.
    for path in _own_package():
        words += ["--tmpfs", path]
    words += ["--ro-bind", str(staged.folder), ROOT]
    return [*words, "--remount-ro", "/", "--chdir", "/", "--"]


def environment() -> dict[str, str]:
    """Return the environment for programs behind bubblewrap, without any of the grader's variables."""
    path = os.pathsep.join([f"{sys.prefix}/bin", "/usr/bin", "/bin"])
    return {"PATH": path, "HOME": "/tmp", "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}


def python_folders() -> list[str]:
    """Return the folders of this Python and its packages, except folders in `LIBRARIES`."""
    found = {sys.prefix, sys.base_prefix, sys.exec_prefix, *site.getsitepackages()}
    found.add(str(Path(sys.executable).resolve().parents[1]))
    kept = [p for p in sorted(found) if os.path.isdir(p) and not p.startswith(LIBRARIES)]
    return [p for p in kept if not any(p != o and p.startswith(f"{o}/") for o in kept)]


def _own_package() -> list[str]:
    """Return the folders of an installed course among the packages."""
    return [
        folder
        for packages in site.getsitepackages()
        if os.path.isdir(folder := os.path.join(packages, "helpers"))
    ]


def reason_unavailable(staged: StagedFiles) -> str:
    """Return "" if bubblewrap works here, otherwise one line with the reason."""
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
