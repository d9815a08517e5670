"""A process that has imported what rank servers need, and forks one into each new set of namespaces.

    grader --fork, with a control socket--> template (behind bubblewrap: read-only system, no network)
                                               `--fork--> keeper: own network, processes, mounts
                                                            `--fork--> rank server, the first process there
                                                                         `--fork--> ranks

Importing torch costs a second, forking some milliseconds: so each submission has a rank server of its own
at no cost. Here nothing but the course's own code runs; a server gives up all rights before it serves.
Started by `bubblewrapped.Template`, which holds the other end; ends when that closes.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import signal
import socket
import struct
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from helpers.grading.sandbox.inside import bound_capabilities, confine
from helpers.ranks import preload, server
from helpers.ranks.messages import Messages
from helpers.ranks.processes import end_with_parent

# CLONE_NEW*: mounts, the host's name, IPC, processes, network.
_NEW = 0x00020000 | 0x04000000 | 0x08000000 | 0x20000000 | 0x40000000
_NOSUID_NODEV, _NOEXEC, _REC_PRIVATE = 2 | 4, 8, (1 << 14) | (1 << 18)
_BIND = 4096 | (1 << 14)
# MS_REMOUNT, _BIND, _RDONLY, _NOSUID, _NOEXEC.
_SHUT = 32 | 4096 | 1 | 2 | _NOEXEC
# What ranks of every check want: else each server would import it.
_DRIVERS = ("helpers.checks.drive", "helpers.checks.hard", "helpers.checks.replaced")
# Folders of which each rank server has its own, in memory.
OWN = ("/tmp", "/dev/shm")
# Of /dev: all rank servers have the same ones.
_SHARED = ("null", "zero", "full", "random", "urandom", "tty", "pts")
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1


def main(fd: int) -> None:
    """Obey the grader at the other end of `fd` until it goes away. Must be the only thread."""
    control = Messages(socket.socket(fileno=fd), most_fds=16)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.umask(0o022)  # not the grader's: folders made here are for whom a server becomes
    preload.import_all(_DRIVERS)
    control.send({"ready": True})
    while True:
        try:
            messages = control.receive(1.0)
        except EOFError:
            return
        _reap()
        for message in messages:
            if "preload" in message:
                preload.preload()
                control.send({"preloaded": True})
            else:
                pair = control.fds.pop(0), control.fds.pop(0)
                control.send({"keeper": _fork_keeper(control.fileno(), message, *pair)})
                for each in pair:
                    # A copy kept here would hold the socket open, and the grader would never see it close.
                    os.close(each)


def _fork_keeper(own: int, asked: dict[str, Any], fd: int, log: int) -> int:
    """Fork the parent of a new rank server; give its process id."""
    pid = os.fork()
    if pid == 0:
        try:
            os.close(own)
            _keep(asked, fd, log)
        except BaseException:
            traceback.print_exc()  # the launcher shows it
        finally:
            os._exit(70)
    return pid


def _keep(asked: dict[str, Any], fd: int, log: int) -> None:
    """Enter namespaces of one's own, have their first process fork, and wait for its end."""
    end_with_parent()
    # Only the next child is in the new process namespace, as its process 1. When that one ends, the
    # kernel kills everything in the namespace, including processes that left their session.
    _call("unshare", _NEW)
    first = os.fork()
    if first == 0:
        try:
            _serve(asked, fd, log)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(70)
    for each in (fd, log):
        os.close(each)
    # The keeper stays as the parent: if the template dies, the keeper does, and the server with it.
    os.waitpid(first, 0)
    os._exit(0)


def _serve(asked: dict[str, Any], fd: int, log: int) -> None:
    """As the first process: furnish the place, give up all rights, and be a rank server."""
    enter(int(asked["disk_bytes"]), asked["kept"])
    # If the server fails before it serves, what it printed is shown to the person who grades.
    for target in (1, 2):
        os.dup2(log, target)
    os.close(log)
    # Without a controlling terminal no program can type into the grader's by TIOCSTI.
    os.setsid()
    become(int(asked["user"]))
    end_with_parent()  # asked again: becoming somebody else has undone it
    os.chdir("/tmp")
    os.mkdir(asked["folder"])
    confine(asked["limits"])
    server.main(fd, "fork", asked["folder"], tuple(asked["emptied"]))
    os._exit(0)


def enter(disk_bytes: int, kept: Sequence[str] = ()) -> None:
    """Give new namespaces their own files in memory, their own view of processes, and a loopback.

    kept: folders below /tmp that stay to be seen, as they were: Python itself may lie there.
    """
    # Otherwise mounts made here would propagate to the namespace from which this one was copied.
    _call("mount", b"none", b"/", None, _REC_PRIVATE, None)
    # Descriptors keep these folders reachable: the mounts below hide their paths.
    held = {folder: os.open(folder, os.O_PATH) for folder in kept}
    size = f"size={disk_bytes},mode=1777".encode()
    for folder in OWN:
        _call("mount", b"tmpfs", folder.encode(), b"tmpfs", _NOSUID_NODEV, size)
    tops = set[str]()
    for folder, fd in held.items():
        own = next(each for each in OWN if folder.startswith(f"{each}/"))
        top = f"{own}/{folder.removeprefix(own).split('/')[1]}"
        if folder != top and top not in tops:  # closed below: else ranks could move what it holds
            os.mkdir(top)
            _call("mount", b"tmpfs", top.encode(), b"tmpfs", _NOSUID_NODEV, b"mode=755")
            tops.add(top)
        os.makedirs(folder)
        _call("mount", f"/proc/self/fd/{fd}".encode(), folder.encode(), None, _BIND, None)
        os.close(fd)
    for top in tops:
        _call("mount", None, top.encode(), None, _SHUT | _NOSUID_NODEV, None)
    for name in _SHARED:  # of use as before; but no times or rights tell the next anything
        _call("mount", None, f"/dev/{name}".encode(), None, _SHUT, None)
    # A /proc of the new process namespace: the old one shows the neighbors' processes.
    _call("mount", b"proc", b"/proc", b"proc", _NOSUID_NODEV | _NOEXEC, None)
    # gloo needs a loopback, which is down in a new network. SIOCSIFFLAGS does it without `ip`.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        flags = fcntl.ioctl(any_socket, _SIOCGIFFLAGS, struct.pack("16sh22x", b"lo", 0))
        (known,) = struct.unpack_from("h", flags, 16)
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", known | _IFF_UP))


def become(user: int) -> None:
    """As root, become a user who owns nothing (0: stay who one is). `confine` takes the rest."""
    if user:
        bound_capabilities()
        # Groups come first: a user other than root may not drop them.
        os.setgroups([])
        os.setresgid(user, user, user)
        # All three ids, as a saved user id of 0 would allow a way back to root.
        os.setresuid(user, user, user)


def probe() -> None:
    """Do what a rank server's place needs, and say "ok". Raise OSError where it cannot be done."""
    _call("unshare", _NEW)
    if os.fork() == 0:
        with contextlib.suppress(OSError):
            enter(1 << 20)
            Path("/tmp/it").write_text("is writable", encoding="utf-8")
            print("ok", flush=True)
        os._exit(0)
    os.wait()


def _call(name: str, *arguments: Any) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    words = [ctypes.c_ulong(a) if isinstance(a, int) else a for a in arguments]
    if getattr(libc, name)(*words):
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
