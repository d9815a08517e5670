"""A real hub for tests: the recipe of docs/hub, run as root, with system users that are finally removed.

It sees the installation read-only, in a separate mount namespace. If Python is in a folder that only root may
enter, the namespace has such a folder with nothing but Python.
"""

from __future__ import annotations

import os
import secrets
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from helpers.course.workspace import find_workspace, set_up_jupyter
from helpers.jobs.ports import free_port

START_S, END_S = 90.0, 30.0
RECIPE = Path("docs", "hub", "jupyterhub_config.py")

# Differences from the recipe: the hub's address and its users.
_CONFIG = """\
load_subconfig({recipe!r})
c.JupyterHub.bind_url = "{address}"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{hub}"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api}"
c.PAMAuthenticator.allowed_groups = {{{group!r}}}
c.PAMAuthenticator.admin_groups = set()
c.PAMAuthenticator.service = "login"
if c.JupyterHub.services:
    c.JupyterHub.services[0]["url"] = "http://127.0.0.1:{room}"
    c.Spawner.environment["REAL_RANKS_ROOM"] = "{address}/services/room"
"""


@dataclass(frozen=True)
class User:
    name: str
    password: str


@dataclass(frozen=True)
class Hub:
    """The address of a running hub, and its users."""

    address: str
    users: Sequence[User]
    log: Path

    @property
    def board(self) -> Path:
        """The board's database."""
        return self.log.parent / "state" / "room" / "board"


@contextmanager
def running_hub(count: int) -> Iterator[Hub]:
    """Run the recipe for a number of new system users."""
    set_up_jupyter()
    with ExitStack() as stack:
        group, users = stack.enter_context(_system_users(count))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rr-hub-")))
        folder.chmod(0o711)  # the board's user has a folder below it
        ports = [*(free_port() for _ in range(3)), _free_port_of_root()]
        address = f"http://127.0.0.1:{ports[0]}"
        root = find_workspace().root
        config, log = folder / "config.py", folder / "hub.log"
        config.write_text(
            _CONFIG.format(
                recipe=str(root / RECIPE),
                address=address,
                hub=ports[1],
                api=ports[2],
                room=ports[3],
                group=group,
            )
        )
        bin = Path(sys.executable).parent
        command = [sys.executable, "-P", "-m", "jupyterhub", "-f", str(config)]
        script = "\n".join([*_mounts(root, folder / "python"), f"exec {shlex.join(command)}"])
        env = {
            "PATH": f"{bin}:{os.environ['PATH']}",
            "HOME": str(folder),
            "LANG": os.environ.get("LANG", "C.UTF-8"),
            "REAL_RANKS_HUB_STATE": str(folder / "state"),
        }
        with log.open("wb") as said:
            process = subprocess.Popen(
                ["unshare", "--mount", "--propagation", "private", "sh", "-ec", script],
                cwd=folder,
                env=env,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        try:
            _wait_until_it_answers(f"{address}/hub/health", process, log)
            yield Hub(address, users, log)
        finally:
            with suppress(psutil.NoSuchProcess):
                stack.callback(_end, psutil.Process(process.pid).children(recursive=True))
            process.send_signal(signal.SIGTERM)  # the hub ends its users' servers, and then exits
            with suppress(subprocess.TimeoutExpired):
                process.wait(END_S)
            process.kill()
            process.wait(END_S)


def _free_port_of_root() -> int:
    """Return an unused port that only root may open, as in the recipe."""
    for port in range(1023, 512, -1):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no port below 1024 is free")


def _mounts(root: Path, base: Path) -> Iterator[str]:
    """Return the commands that make the installation read-only, and Python accessible for all."""
    python = Path(sys.base_prefix).resolve()
    closed = [p for p in reversed(python.parents) if not p.stat().st_mode & 0o001]
    if closed:
        yield f"mkdir {base}"
        yield f"mount --bind {python} {base}"
        yield f"mount -t tmpfs -o mode=755 tmpfs {closed[0]}"
        yield f"mkdir -p {python}"
        yield f"mount --bind {base} {python}"
    yield f"mount --bind {root} {root}"
    yield f"mount -o remount,bind,ro {root}"


@contextmanager
def _system_users(count: int) -> Iterator[tuple[str, list[User]]]:
    mark = f"rr{os.getpid()}"
    users = [User(f"{mark}u{number}", secrets.token_urlsafe(12)) for number in range(count)]
    subprocess.run(["groupadd", mark], check=True)
    try:
        for user in users:
            subprocess.run(
                ["useradd", "--create-home", "--groups", mark, "--shell", "/bin/bash", user.name],
                check=True,
            )
            # readable by others, as on many systems, so this mode does not protect the course's folder
            Path("/home", user.name).chmod(0o755)
        lines = "".join(f"{user.name}:{user.password}\n" for user in users)
        subprocess.run(["chpasswd"], input=lines, text=True, check=True)
        yield mark, users
    finally:
        for user in users:
            _end(processes_of(user.name))
            subprocess.run(["userdel", "--remove", user.name], capture_output=True, check=False)
        subprocess.run(["groupdel", mark], check=False)


def processes_of(name: str) -> list[psutil.Process]:
    """Return the running processes of a user."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.username() == name and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def _end(processes: Sequence[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.Error):
            process.kill()


def _wait_until_it_answers(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=5.0):
                return
        except OSError:
            assert process.poll() is None, log.read_text()[-4000:]
            time.sleep(0.5)
    raise AssertionError(f"no answer after {START_S:g} s: {log.read_text()[-4000:]}")
