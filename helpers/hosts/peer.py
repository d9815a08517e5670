"""Call methods of the process at the other end of a Dask connection, from either end.

    kernel: link.HostLink ══ one connection of Dask's ══ worker: worker.Host

The methods of one end are started in the order of the other end's calls. Each end sends a message at least
every second. After ten seconds without a message, an end assumes that the other end is gone, because cutting
a cable does not close a connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Coroutine
from typing import Any

from msgspec import msgpack

# A message of this many bytes must arrive in less than `SILENCE_S`, even on a slow network.
MAX_BYTES = 1 << 20
# Maximum number of unanswered messages of one rank.
WINDOW = 4
_HEARTBEAT_S, SILENCE_S = 1.0, 10.0
_ANSWER, _HEARTBEAT = "answer", "beat"


class Problem(Exception):
    """The other end's method failed. The message is the reason."""


class PeerGone(Problem):
    """The other end has closed the connection, is silent, or does not answer in time."""


class Peer:
    """One end. The other end can call its `on_...` methods. It must be used in only one event loop."""

    def __init__(self, comm: Any) -> None:
        self.closed = False
        self.why = "the course's process on that host exited, or its connection was lost"
        self._comm = comm
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[bytes]] = {}
        self._out: asyncio.Queue[tuple[str, int, bytes]] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Serve the other end's calls until the connection closes or falls silent."""
        self.spawn(self._write())
        try:
            while True:
                what, number, body = await asyncio.wait_for(self._comm.read(), SILENCE_S)
                if what == _ANSWER:
                    answer = self._answers.get(number)
                    if answer is not None and not answer.done():  # otherwise it arrived too late
                        answer.set_result(body)
                elif what != _HEARTBEAT:
                    self.spawn(self._execute(what, number, body))
        except TimeoutError:
            self.why = "it has not answered for ten seconds"
        except OSError:
            pass
        finally:
            self.closed = True
            self._comm.abort()
            for answer in self._answers.values():
                if not answer.done():
                    answer.set_exception(PeerGone(self.why))
            for task in self._tasks:
                task.cancel()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in the background, at most until the connection closes."""

        async def run_quietly() -> None:
            with contextlib.suppress(Problem, OSError):
                await work

        task = asyncio.ensure_future(run_quietly())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: work.close())  # needed if it was cancelled before starting

    def post(self, method: str, **given: Any) -> None:
        """Call the other end's method `on_{method}` without waiting for it."""
        self._out.put_nowait((method, 0, msgpack.encode(given)))

    async def call(self, method: str, kind: Any = Any, **given: Any) -> Any:
        """Call the other end's method `on_{method}`, and return its answer as a `kind`.

        Raises:
            Problem: The method failed.
            PeerGone: The connection has closed.
        """
        if self.closed:
            raise PeerGone(self.why)
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        self._out.put_nowait((method, number, msgpack.encode(given)))
        try:
            problem, value = msgpack.decode(await answer, type=tuple[str, kind | None])
        finally:
            del self._answers[number]
        if problem:
            raise Problem(problem)
        return value

    async def send(self, window: asyncio.Semaphore, method: str, **given: Any) -> None:
        """Call the other end's method, once the window has room for another unanswered call."""
        await window.acquire()

        async def call() -> None:
            try:
                await self.call(method, **given)
            finally:
                window.release()

        self.spawn(call())

    async def _execute(self, method: str, number: int, body: bytes) -> None:
        problem, value = "", None
        try:
            value = await getattr(self, f"on_{method}")(**msgpack.decode(body))
        except Exception as error:
            problem = str(error) or repr(error)
        if number:
            self._out.put_nowait((_ANSWER, number, msgpack.encode((problem, value))))

    async def _write(self) -> None:
        while True:
            try:
                message = await asyncio.wait_for(self._out.get(), _HEARTBEAT_S)
            except TimeoutError:
                message = (_HEARTBEAT, 0, b"")
            await self._comm.write(message)
