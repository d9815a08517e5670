"""Carry bytes in a Dask worker between a kernel and the agent on the worker's host.

    kernel == a connection of Dask's ==> worker == a pair of sockets ==> agent (a process that it starts)

The worker itself imports nothing of torch and runs no learner code. When the kernel's connection closes or
the worker exits, the agent's socket closes, and the agent ends all that it has started.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from distributed import Worker, WorkerPlugin
from distributed.core import Status

# The name of the plugin, and of the request to a worker.
NAME = "real-ranks"
_CHUNK = 1 << 18
# Timeouts in seconds: for an agent to end its ranks, and for a kernel that lost a host to reconnect.
_END_S, _AGAIN_S = 10.0, 10.0


class Plugin(WorkerPlugin):
    """Makes a worker answer to `NAME`. Sent to all present and future workers of a cluster."""

    name = NAME

    def __init__(self, in_kernels_group: bool = False) -> None:
        """Store whether the worker is in the kernel's process group.

        If so, it leaves the group, because a Stop in the notebook would otherwise end it.
        """
        self._leaves = in_kernels_group

    def setup(self, worker: Worker) -> None:
        """Answer to `NAME` by serving a kernel until it disconnects.

        ends_cluster: the cluster was started for that kernel, which may have been killed without ending it.
        """
        if self._leaves:
            os.setsid()
        kernels: list[object] = []

        async def handler(comm: Any, interface: str = "", ends_cluster: bool = False) -> Status:
            kernels.append(comm)
            try:
                await _serve(comm, worker.address, interface)
            finally:
                kernels.remove(comm)
            if ends_cluster:
                await asyncio.sleep(_AGAIN_S)
                if not kernels:
                    await worker.scheduler.terminate()
            return Status.dont_reply

        worker.handlers[NAME] = handler


async def _serve(comm: Any, address: str, interface: str) -> None:
    """Start an agent and carry its bytes until the kernel's connection closes."""
    ours, theirs = socket.socketpair()
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    with ours:
        with theirs:
            # Not asyncio's subprocess: its thread logs a warning if the worker exits before the agent.
            agent = subprocess.Popen(
                # -P: a json.py in the worker's folder must not shadow Python's own
                [sys.executable, "-P", "-m", "helpers.hosts.agent", address, interface],
                stdin=theirs.fileno(),
                start_new_session=True,  # a Ctrl-C for the worker is not for the ranks
                env={**os.environ, "PYTHONPATH": path},
            )
        await carry(comm, ours)
    # The agent's socket is closed, so it ends its ranks, then itself.
    until = time.monotonic() + _END_S
    while agent.poll() is None and time.monotonic() < until:
        await asyncio.sleep(0.05)
    agent.kill()


async def carry(comm: Any, sock: socket.socket) -> None:
    """Copy bytes between a Dask connection and a socket, both ways, until either closes."""
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
        # Whatever exception ended a task, it means that the connection or the socket has closed.
        await asyncio.gather(*tasks, return_exceptions=True)
