"""`course room serve`: open a room, say how to get in, and serve until Ctrl-C."""

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
from helpers.room.app import STYLE, Room, application, let_in
from helpers.room.board import Board
from helpers.room.connections import MOST_CONNECTIONS
from helpers.room.hub import Hub
from helpers.room.store import CODE, KEY, NotARoom, Store


class CannotServe(Exception):
    """The room cannot be opened. One line: why, and what to do."""


def serve(
    file: Path,
    host: str,
    port: int,
    address: str = "",
    stuck_after: float = 10.0,
    hub: bool = False,
    user: str = "",
) -> None:
    """Serve a room until SIGINT or SIGTERM. port: 0 for any that is free. Raise CannotServe.

    file: the room's database. address: as learners reach the board, if not at `host`. hub: JupyterHub has
    started this as a service; it says where to listen, and who is who. user: root becomes that user once the
    port is open, so that a port below 1024 can be used, which no other user can take.
    """
    if not STYLE.exists():
        raise CannotServe("this copy is a learner's: the board's pages are not all in it.")
    service = _hub() if hub else None
    if service is not None:
        there = urlsplit(os.environ["JUPYTERHUB_SERVICE_URL"])
        host, port = there.hostname or host, there.port or port
    with closing(_listening(host, port)) as listening:
        if user:
            _become(user)
        _serve(file, host, listening, address, stuck_after, service)


def _serve(
    file: Path,
    host: str,
    listening: socket.socket,
    address: str,
    stuck_after: float,
    service: Hub | None,
) -> None:
    with closing(_open(file)) as store:
        port = listening.getsockname()[1]
        address = address or f"http://{_named(host)}:{port}"
        room = Room(
            store,
            Board(headings(), known_mistakes, stuck_after),
            store.secret(KEY),
            address.rstrip("/") + (service.prefix if service else ""),
        )
        if service is not None:
            room = replace(room, prefix=service.prefix, who_is=service.who_is)
            room = replace(room, login=service.login(partial(let_in, room)))
            print(
                f"Learners need  REAL_RANKS_ROOM={room.address}  in their environment.", flush=True
            )
            return run(room, listening)
        code = store.secret(CODE)
        print(f'Learners run:  from helpers import join; join("{room.address}", "{code}")')
        print(
            f"You open:      {room.address}/enter?key={room.key}  (keep this address to yourself)"
        )
        if host in {"127.0.0.1", "localhost", "::1"}:
            print("Only this machine can reach the board. --host 0.0.0.0 opens it to the network.")
        print(
            f"Kept in {file}. Ctrl-C ends it; learners' checks wait until it is back.", flush=True
        )
        run(room, listening)


def forget(file: Path, name: str) -> None:
    """Remove a learner from a room's file, whether or not it is being served. Raise CannotServe.

    name: as the board shows it.
    """
    with closing(_open(file, alone=False)) as store:
        board = Board(headings(), known_mistakes)
        for learner in store.learners():
            board.enter(learner)
        found = [id for id, shown in board.names.items() if shown == name]
        if not found:
            names = ", ".join(sorted(board.names.values())) or "no one"
            raise CannotServe(f"No learner is called {name!r}. In this room: {names}.")
        for id in found:
            store.forget(id)


def forget_silent(file: Path) -> int:
    """Remove the learners of whom the board has nothing but a name; return how many. Raise CannotServe."""
    with closing(_open(file, alone=False)) as store:
        silent = store.silent()
        for id in silent:
            store.forget(id)
        return len(silent)


def replace_code(file: Path) -> str:
    """Replace the code of a room, whether or not it is being served. Raise CannotServe."""
    with closing(_open(file, alone=False)) as store:
        return store.replace_code()


def _open(file: Path, alone: bool = True) -> Store:
    try:
        if not alone and not file.exists():
            raise NotARoom(f"There is no room at {file}. --file names another file.")
        store = Store(file)
        if alone:
            store.lock()
        return store
    except NotARoom as error:
        raise CannotServe(str(error)) from error


def _become(user: str) -> None:
    """Change to that user, for good."""
    try:
        entry = pwd.getpwnam(user)
        os.initgroups(user, entry.pw_gid)
        os.setgid(entry.pw_gid)
        os.setuid(entry.pw_uid)
    except KeyError:
        raise CannotServe(f"--user: there is no user {user!r} on this machine.") from None
    except PermissionError:
        raise CannotServe("--user needs root, which it gives up.") from None


def run(room: Room, listening: socket.socket) -> None:
    """Serve a room on a socket that listens."""
    # Each connection is a file, and many systems allow a process 1,024 of them unless it asks for more.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = MOST_CONNECTIONS + 1000  # those of the teacher, and what arrives before it is closed
    if 0 <= soft < enough:
        more = min(enough, hard) if hard >= 0 else enough
        resource.setrlimit(resource.RLIMIT_NOFILE, (more, hard))
    config = uvicorn.Config(
        application(room),
        log_level="error",  # what strangers send is not worth a line in the teacher's terminal
        access_log=False,
        server_header=False,
        proxy_headers=False,
        # Pages keep their stream open: it would hold up the end.
        timeout_graceful_shutdown=1,
        backlog=2048,
        http=room.connections.protocol(),
        h11_max_incomplete_event_size=16 << 10,
        ws="none",
    )
    uvicorn.Server(config).run(sockets=[listening])


def _hub() -> Hub:
    try:
        return Hub()
    except ModuleNotFoundError:
        raise CannotServe("--hub needs jupyterhub in this environment: install it.") from None
    except KeyError as error:
        raise CannotServe(f"--hub is for a service that JupyterHub starts: no {error}.") from None


def _listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise CannotServe(
            f"{host}:{port} cannot be used: {error.strerror or error}. --port names another port."
        ) from None


def _named(host: str) -> str:
    """Return what learners write for the machine: an address of its own, where it listens on all."""
    if host in {"0.0.0.0", "::"}:
        known = (address for each in psutil.net_if_addrs().values() for address in each)
        own = (each.address for each in known if each.family == socket.AF_INET)
        return next((each for each in own if not each.startswith("127.")), socket.gethostname())
    return f"[{host}]" if ":" in host else host
