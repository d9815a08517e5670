"""`course room serve`: open a room, say how to get in, and serve until Ctrl-C."""

from __future__ import annotations

import os
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
from helpers.room.app import MOST_LEARNERS, STYLE, Room, application, let_in
from helpers.room.board import Board
from helpers.room.hub import Hub
from helpers.room.store import Store

MOST_CONNECTIONS = 4 * MOST_LEARNERS
_CODE, _KEY = 8, 32


class CannotServe(Exception):
    """The room cannot be opened. One line: why, and what to do."""


def serve(
    file: Path,
    host: str,
    port: int,
    address: str = "",
    stuck_after: float = 10.0,
    hub: bool = False,
) -> None:
    """Serve a room until SIGINT or SIGTERM. port: 0 for any that is free. Raise CannotServe.

    file: the room's database. address: as learners reach the board, if not at `host`. hub: JupyterHub has
    started this as a service; it says where to listen, and who is who.
    """
    if not STYLE.exists():
        raise CannotServe("this copy is a learner's: the board's pages are not all in it.")
    service = _hub() if hub else None
    if service is not None:
        there = urlsplit(os.environ["JUPYTERHUB_SERVICE_URL"])
        host, port = there.hostname or host, there.port or port
    with closing(_listening(host, port)) as listening, closing(Store(file)) as store:
        port = listening.getsockname()[1]
        address = address or f"http://{_named(host)}:{port}"
        room = Room(
            store,
            Board(headings(), known_mistakes, stuck_after),
            store.setting("code", _CODE),
            store.setting("key", _KEY),
            address.rstrip("/") + (service.prefix if service else ""),
        )
        if service is not None:
            room = replace(room, prefix=service.prefix, who_is=service.who_is)
            room = replace(room, login=service.login(partial(let_in, room)))
            print(
                f"Learners need  REAL_RANKS_ROOM={room.address}  in their environment.", flush=True
            )
            return run(room, listening)
        print(f'Learners run:  from helpers import join; join("{room.address}", "{room.code}")')
        print(
            f"You open:      {room.address}/enter?key={room.key}  (keep this address to yourself)"
        )
        if host in {"127.0.0.1", "localhost", "::1"}:
            print("Only this machine can reach the board. --host 0.0.0.0 opens it to the network.")
        print(
            f"Kept in {file}. Ctrl-C ends it; learners' checks wait until it is back.", flush=True
        )
        run(room, listening)


def run(room: Room, listening: socket.socket) -> None:
    """Serve a room on a socket that listens."""
    # Each connection is a file, and many systems allow a process 1,024 of them unless it asks for more.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = MOST_CONNECTIONS + 200
    if 0 <= soft < enough:
        more = min(enough, hard) if hard >= 0 else enough
        resource.setrlimit(resource.RLIMIT_NOFILE, (more, hard))
    config = uvicorn.Config(
        application(room),
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        # Pages keep their stream open: it would hold up the end.
        timeout_graceful_shutdown=1,
        timeout_keep_alive=20,
        backlog=2048,
        # Connections beyond what any class needs are refused, and the board goes on.
        limit_concurrency=MOST_CONNECTIONS,
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
