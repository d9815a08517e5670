"""Open a room, print how to join it, and serve it until Ctrl-C: `course room serve`."""

from __future__ import annotations

import os
import pwd
import resource
import socket
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import uvicorn

from helpers.checks.headings import headings
from helpers.checks.mistakes import known_mistakes
from helpers.room.app import Room, application, redirect_teacher
from helpers.room.board import Board
from helpers.room.connections import MAX_CONNECTIONS
from helpers.room.hub import Hub
from helpers.room.store import CODE, KEY, NotARoom, Store


class CannotServe(Exception):
    """The room cannot be opened. The message is one line with the reason and advice."""


def serve(
    file: Path,
    host: str,
    port: int,
    address: str = "",
    stuck_after: float = 10.0,
    hub: bool = False,
    user: str = "",
) -> None:
    """Serve a room until SIGINT or SIGTERM.

    Args:
        file: The room's database.
        host: The address on which to listen.
        port: The port on which to listen; 0 for any free port.
        address: The board's address for learners, if it is not `host`.
        stuck_after: Minutes of trying after which a learner is stuck.
        hub: Whether JupyterHub has started this board as a service, and defines the address and the users.
        user: The user to change to, from root, after opening the port. So a port below 1024 can be used,
            which only root can open.

    Raises:
        CannotServe: The room cannot be opened.
    """
    service = _open_hub() if hub else None
    if service is not None:
        there = urlsplit(os.environ["JUPYTERHUB_SERVICE_URL"])
        host, port = there.hostname or host, there.port or port
    with closing(_listen(host, port)) as listening:
        if user:
            _change_user(user)
        _serve(file, host, listening, address, stuck_after, service)


def _serve(
    file: Path,
    host: str,
    listening: socket.socket,
    address: str,
    stuck_after: float,
    service: Hub | None,
) -> None:
    with closing(_open_store(file)) as store:
        port = listening.getsockname()[1]
        address = address or f"http://{_host_for_learners(host)}:{port}"
        room = Room(
            store,
            Board(headings(), known_mistakes, stuck_after),
            store.secret(KEY),
            address.rstrip("/") + (service.prefix if service else ""),
        )
        if service is not None:
            room = replace(room, prefix=service.prefix, find_login=service.find_login)
            room = replace(room, login_routes=service.login_routes(partial(redirect_teacher, room)))
            print(
                f"Learners need  REAL_RANKS_ROOM={room.address}  in their environment.", flush=True
            )
            return run_server(room, listening)
        code = store.secret(CODE)
        print(f'Learners run:  from helpers import join; join("{room.address}", "{code}")')
        print(
            f"You open:      {room.address}/enter?key={room.key}  (keep this address to yourself)"
        )
        if host in {"127.0.0.1", "localhost", "::1"}:
            print("Only this machine can reach the board. --host 0.0.0.0 opens it to the network.")
        print(
            f"The board is stored in {file}. Ctrl-C stops it; learners' checks wait until it is back.",
            flush=True,
        )
        run_server(room, listening)


def forget_learner(file: Path, name: str) -> None:
    """Remove a learner from a room's file, even while it is being served. Raise CannotServe.

    name: the learner's name on the board.
    """
    with closing(_open_store(file, exclusive=False)) as store:
        board = Board(headings(), known_mistakes)
        for learner in store.learners():
            board.add_learner(learner)
        found = [id for id, shown in board.names.items() if shown == name]
        if not found:
            names = ", ".join(sorted(board.names.values())) or "no one"
            raise CannotServe(f"No learner is called {name!r}. In this room: {names}.")
        for id in found:
            store.forget(id)


def forget_silent(file: Path) -> int:
    """Remove the learners who have sent nothing but a name. Return their number. Raise CannotServe."""
    with closing(_open_store(file, exclusive=False)) as store:
        silent = store.silent_learners()
        for id in silent:
            store.forget(id)
        return len(silent)


def replace_code(file: Path) -> str:
    """Replace the code of a room, even while it is being served. Return the new code. Raise CannotServe."""
    with closing(_open_store(file, exclusive=False)) as store:
        return store.replace_code()


def _open_store(file: Path, exclusive: bool = True) -> Store:
    try:
        if not exclusive and not file.exists():
            raise NotARoom(f"There is no room at {file}. Choose a different file with --file.")
        store = Store(file)
        if exclusive:
            store.lock()
        return store
    except NotARoom as error:
        raise CannotServe(str(error)) from error


def _change_user(user: str) -> None:
    """Change to a user permanently. Raise CannotServe if that fails."""
    try:
        entry = pwd.getpwnam(user)
        os.initgroups(user, entry.pw_gid)
        os.setgid(entry.pw_gid)
        os.setuid(entry.pw_uid)
    except KeyError:
        raise CannotServe(f"--user: there is no user {user!r} on this machine.") from None
    except PermissionError:
        raise CannotServe("--user needs root, whose permissions it then drops.") from None


def run_server(room: Room, listening: socket.socket) -> None:
    """Serve a room on a listening socket."""
    # Each connection is a file, and many systems allow only 1,024 files unless the process asks for more.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # including the teacher's connections, and connections accepted before others have closed
    enough = MAX_CONNECTIONS + 1000
    if 0 <= soft < enough:
        more = min(enough, hard) if hard >= 0 else enough
        resource.setrlimit(resource.RLIMIT_NOFILE, (more, hard))
    config = uvicorn.Config(
        application(room),
        log_level="error",  # requests of strangers should not fill the teacher's terminal
        access_log=False,
        server_header=False,
        proxy_headers=False,
        # Pages keep their streams open, which would delay the exit.
        timeout_graceful_shutdown=1,
        backlog=2048,
        http=room.connections.protocol(),
        h11_max_incomplete_event_size=16 << 10,
        ws="none",
    )
    uvicorn.Server(config).run(sockets=[listening])


def _open_hub() -> Hub:
    try:
        return Hub()
    except ModuleNotFoundError:
        raise CannotServe("--hub needs jupyterhub in this environment: install it.") from None
    except KeyError as error:
        name = error.args[0]
        words = f"--hub only works in a service that JupyterHub starts: {name} is not set."
        raise CannotServe(words) from None


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise CannotServe(
            f"{host}:{port} cannot be used: {error.strerror or error}. Choose a different port "
            f"with --port."
        ) from None


def _host_for_learners(host: str) -> str:
    """Return the host name in learners' addresses: this machine's address if it listens on all addresses."""
    if host in {"0.0.0.0", "::"}:
        known = (address for each in psutil.net_if_addrs().values() for address in each)
        own = (each.address for each in known if each.family == socket.AF_INET)
        return next((each for each in own if not each.startswith("127.")), socket.gethostname())
    return f"[{host}]" if ":" in host else host
