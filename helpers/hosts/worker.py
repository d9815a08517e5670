"""What a Dask worker does for a course's kernel: it carries bytes between that and the agent on its host.

    kernel == a connection of Dask's ==> worker == a pair of sockets ==> agent (a process that it starts)

The worker itself imports nothing of torch's and runs nobody's code. When the kernel's connection closes, the
agent's socket does, and the agent ends all that it has started; when the worker ends, the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from distributed import Worker, WorkerPlugin
from distributed.core import Status

# The name of the plugin, and of the request to a worker.
NAME = "real-ranks"
_CHUNK = 1 << 18


class Plugin(WorkerPlugin):
    """Has a worker answer to `NAME`. Sent to all workers of a cluster, and to those that come later."""

    name = NAME

    def setup(self, worker: Worker) -> None:
        # The worker that asks where it is: the agent must listen at an address that others know.
        async def handler(comm: Any, interface: str = "") -> Status:
            await _serve(comm, socket.gethostname(), worker.address, interface)
            return Status.dont_reply

        worker.handlers[NAME] = handler


async def _serve(comm: Any, host: str, address: str, interface: str) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        root = str(Path(__file__).parents[2])
        path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
        process = subprocess.Popen(
            [sys.executable, "-m", "helpers.hosts.agent", host, address, interface],
            stdin=theirs.fileno(),
            start_new_session=True,  # a Ctrl-C for the worker is not for the ranks
            env={**os.environ, "PYTHONPATH": path},
        )
    try:
        await carry(comm, ours)
    finally:
        ours.close()
        # It has seen the end of its socket, and ends its ranks. Nobody waits for it for long.
        await asyncio.to_thread(_end, process)


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(10.0)
        return
    process.kill()
    process.wait()


async def carry(comm: Any, sock: socket.socket) -> None:
    """Copy bytes between a connection of Dask's and a socket, both ways, until either closes."""
    sock.setblocking(False)
    loop = asyncio.get_running_loop()

    async def to_comm() -> None:
        while data := await loop.sock_recv(sock, _CHUNK):
            await comm.write(data)

    async def to_sock() -> None:
        while True:
            await loop.sock_sendall(sock, await comm.read())

    tasks = [asyncio.ensure_future(to_comm()), asyncio.ensure_future(to_sock())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        comm.abort()
        for task in tasks:
            task.cancel()
        # What ended them is the same thing in all its forms: the connection or the socket has closed.
        await asyncio.gather(*tasks, return_exceptions=True)
