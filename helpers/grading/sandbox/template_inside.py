"""Fork rank servers, each into new namespaces, from a process that has already imported torch.

    grader --fork, with a control socket--> template (behind bubblewrap: read-only system, no network)
                                               `--fork--> keeper: own network, processes, mounts
                                                            `--fork--> rank server, the first process there
                                                                         `--fork--> ranks

Importing torch takes a second, but forking takes a few milliseconds, so every submission can have a separate
rank server at almost no cost. The template runs only the course's code, and a server drops all privileges
before it serves. `bubblewrapped.Template` starts the template and holds the other end of its socket. When
this socket closes, the template exits.
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

from helpers.grading.sandbox.inside import bound_capabilities, limit_process
from helpers.ranks import preload, server
from helpers.ranks.json_messages import Messages
from helpers.ranks.processes import end_with_parent

# CLONE_NEW* for mounts, host name, IPC, processes and network.
_CLONE_FLAGS = 0x00020000 | 0x04000000 | 0x08000000 | 0x20000000 | 0x40000000
_NOSUID_NODEV, _NOEXEC, _REC_PRIVATE = 2 | 4, 8, (1 << 14) | (1 << 18)
_BIND = 4096 | (1 << 14)
# MS_REMOUNT, MS_BIND, MS_RDONLY, MS_NOSUID, MS_NOEXEC.
_REMOUNT_READ_ONLY = 32 | 4096 | 1 | 2 | _NOEXEC
# Modules needed by the ranks of every check. Otherwise each server would import them.
_DRIVERS = ("helpers.checks.driver", "helpers.checks.adversarial", "helpers.checks.replaced")
# Folders that each rank server has separately, in memory.
OWN_FOLDERS = ("/tmp", "/dev/shm")
# Devices in /dev shared by all rank servers.
_SHARED_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "pts")
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1


def main(fd: int) -> None:
    """Execute the grader's requests, which arrive on `fd`, until `fd` closes. Must run in the only thread."""
    control = Messages(socket.socket(fileno=fd), max_fds=16)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # do not use the grader's umask, because a server running as a different user must be able to use folders
    # made here
    os.umask(0o022)
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
                    # A copy kept in this process would hold the socket open, so the grader would never see it
                    # close.
                    os.close(each)


def _fork_keeper(control_fd: int, request: dict[str, Any], fd: int, log: int) -> int:
    """Fork the parent of a new rank server. Return its process id."""
    pid = os.fork()
    if pid == 0:
        try:
            os.close(control_fd)
            _run_namespace_parent(request, fd, log)
        except BaseException:
            traceback.print_exc()  # the launcher shows this traceback
        finally:
            os._exit(70)
    return pid


def _run_namespace_parent(request: dict[str, Any], fd: int, log: int) -> None:
    """Enter new namespaces, fork their first process, and wait until it exits."""
    end_with_parent()
    # Only the next child is in the new process namespace, as process 1. When it exits, the kernel kills
    # everything in the namespace, including processes that left their session.
    _call("unshare", _CLONE_FLAGS)
    first = os.fork()
    if first == 0:
        try:
            _serve(request, fd, log)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(70)
    for each in (fd, log):
        os.close(each)
    # The keeper stays as the parent, so that the keeper and the server exit with the template.
    os.waitpid(first, 0)
    os._exit(0)


def _serve(request: dict[str, Any], fd: int, log: int) -> None:
    """Prepare the namespaces as their first process, drop all privileges, and run a rank server."""
    enter_namespaces(int(request["disk_bytes"]), request["kept"])
    # If the server fails before it serves, the instructor sees its output.
    for target in (1, 2):
        os.dup2(log, target)
    os.close(log)
    # Without a controlling terminal, no program can use TIOCSTI to type into the grader's terminal.
    os.setsid()
    change_user(int(request["user"]))
    end_with_parent()  # call it again, because changing the user has cleared the setting
    os.chdir("/tmp")
    os.mkdir(request["folder"])
    limit_process(request["limits"])
    server.main(fd, "fork", request["folder"], tuple(request["emptied"]))
    os._exit(0)


def enter_namespaces(disk_bytes: int, kept: Sequence[str] = ()) -> None:
    """Mount files in memory and /proc in new namespaces, and bring up their loopback interface.

    kept: folders below /tmp or /dev/shm that stay visible, because Python may be in them.
    """
    # Otherwise mounts made here would propagate to the namespace from which this one was copied.
    _call("mount", b"none", b"/", None, _REC_PRIVATE, None)
    # Descriptors keep these folders reachable, because the mounts below hide their paths.
    held = {folder: os.open(folder, os.O_PATH) for folder in kept}
    size = f"size={disk_bytes},mode=1777".encode()
    for folder in OWN_FOLDERS:
        _call("mount", b"tmpfs", folder.encode(), b"tmpfs", _NOSUID_NODEV, size)
    tops = set[str]()
    for folder, fd in held.items():
        own = next(each for each in OWN_FOLDERS if folder.startswith(f"{each}/"))
        top = f"{own}/{folder.removeprefix(own).split('/')[1]}"
        # it is made read-only below, because otherwise ranks could move its contents
        if folder != top and top not in tops:
            os.mkdir(top)
            _call("mount", b"tmpfs", top.encode(), b"tmpfs", _NOSUID_NODEV, b"mode=755")
            tops.add(top)
        os.makedirs(folder)
        _call("mount", f"/proc/self/fd/{fd}".encode(), folder.encode(), None, _BIND, None)
        os.close(fd)
    for top in tops:
        _call("mount", None, top.encode(), None, _REMOUNT_READ_ONLY | _NOSUID_NODEV, None)
    # they remain usable, but their times and permissions cannot pass information to the next server
    for name in _SHARED_DEVICES:
        _call("mount", None, f"/dev/{name}".encode(), None, _REMOUNT_READ_ONLY, None)
    # Mount a /proc of the new process namespace, because the old one shows other servers' processes.
    _call("mount", b"proc", b"/proc", b"proc", _NOSUID_NODEV | _NOEXEC, None)
    # gloo needs the loopback interface, which is down in a new network. SIOCSIFFLAGS brings it up without
    # `ip`.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        flags = fcntl.ioctl(any_socket, _SIOCGIFFLAGS, struct.pack("16sh22x", b"lo", 0))
        (known,) = struct.unpack_from("h", flags, 16)
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", known | _IFF_UP))


def change_user(user: int) -> None:
    """Change from root to a user without files, unless `user` is 0. `limit_process` drops the rest."""
    if user:
        bound_capabilities()
        # Drop groups first, because only root may drop them.
        os.setgroups([])
        os.setresgid(user, user, user)
        # Set all three ids, because a saved user id of 0 would allow a return to root.
        os.setresuid(user, user, user)


def probe() -> None:
    """Set up namespaces like those of a rank server, and print "ok". Raise OSError if that fails."""
    _call("unshare", _CLONE_FLAGS)
    if os.fork() == 0:
        with contextlib.suppress(OSError):
            enter_namespaces(1 << 20)
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
