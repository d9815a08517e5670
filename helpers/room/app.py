"""Serve the board as a web application: learners post to `api/`, and the teacher's page receives events.

    POST api/join    a code (or a user's token of JupyterHub) -> a new token for this learner
    POST api/events  events -> "stored", once they are on the disk
    GET  board, projected, news, play/KEY    for the teacher, who has the key
    POST lower/ID, forget/ID, new-code       from the teacher's board
    GET  /           for everybody: a page about the data being sent

Requests contain data of a few kinds and limited size, which is only shown as text.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import sqlite3
import sys
import tempfile
import time
import unicodedata
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import (
    HTMLResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from helpers.room.board import Board, SharedMistake
from helpers.room.board_messages import (
    MAX_BYTES,
    MAX_JOIN_BYTES,
    EventBatch,
    HandEvent,
    JoinReply,
    JoinRequest,
    StoredReply,
)
from helpers.room.connections import Connections, network_key
from helpers.room.learner import WHAT_IS_SENT
from helpers.room.pages import PAGE_FOLDER, render_page
from helpers.room.store import CODE, Learner, Store, TooManyEvents, token_digest
from helpers.views.page_style import PAGE_STYLE

MAX_LEARNERS = 2_000
MAX_JOINS_PER_MINUTE = 200
"""Maximum joins per minute from one address: enough for a lecture hall behind one router, but no flood."""
MAX_PAGES = 40
NEWS_INTERVAL_S = 1.0
FILE_POLL_S = 1.0
"""Interval at which the board checks whether `course room forget` or `new-code` has changed its file."""
KEEP_ALIVE_S = 15.0
PLAY_TIMEOUT_S = 120.0
BODY_TIMEOUT_S = 10.0
_COOKIE = "real-ranks-room"
_MAX_NAME_CHARS = 60
_MAX_COMBINING_MARKS = 2
# Invisible letters and marks: fillers, variation selectors, the empty Braille pattern.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {
    *map(chr, range(0xFE00, 0xFE10)),
    *map(chr, range(0xE0100, 0xE01F0)),
}
_UNKNOWN_LEARNER = "The board does not know this learner: join(url, code) again."
_BASE_POLICY = "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'; "
_PAGE_POLICY = (
    _BASE_POLICY + "script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'"
)
# A player contains a script. It runs in a separate origin, so it cannot reach the board.
_PLAYER_POLICY = _BASE_POLICY + (
    "script-src 'unsafe-inline' blob:; style-src 'unsafe-inline'; img-src data:; sandbox allow-scripts"
)

FindLogin = Callable[[str], Awaitable[str]]
"""A function that returns the login of a token's user, or "" if JupyterHub does not know the token."""


@dataclass(frozen=True)
class Room:
    """One room.

    Args:
        key: The key with which the teacher can see the class.
        address: The board's address for learners.
        prefix: The beginning of all paths, "" or "/a/b".
        find_login: Function that asks JupyterHub; None if learners join with the code.
        login_routes: Further routes for the teacher's login with JupyterHub. They call `redirect_teacher`.
    """

    store: Store
    board: Board
    key: str
    address: str
    prefix: str = ""
    find_login: FindLogin | None = None
    login_routes: tuple[Route, ...] = ()
    connections: Connections = field(default_factory=Connections)


def application(room: Room) -> ASGIApp:
    """Return the application of a room."""
    service = _Service(room)
    return _SecurityHeaders(_ConnectionGate(service, service.application()))


def redirect_teacher(room: Room) -> Response:
    """Redirect an authenticated teacher to the board, with the key as a cookie."""
    response = RedirectResponse(f"{room.prefix}/board", 303)
    response.set_cookie(_COOKIE, room.key, path=f"{room.prefix}/", httponly=True, samesite="lax")
    return response


class _Service:
    """The routes of a room, and the access rules."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.code = room.store.secret(CODE)
        self.by_token: dict[bytes, Learner] = {}
        self.joins = defaultdict[str, deque[float]](deque)
        self.rendered_mistakes: dict[str, str] = {}
        self.play_lock = asyncio.Lock()

    def application(self) -> Starlette:
        routes = [
            Route("/", self.show_about),
            Route("/style.css", self.send_style),
            Route("/board.{kind:str}", self.send_asset),
            Route("/enter", self.enter_board),
            Route("/board", self.page),
            Route("/projected", self.page),
            Route("/news", self.news),
            Route("/play/{key:str}", self.show_play),
            Route("/lower/{learner:int}", self.lower_hand, methods=["POST"]),
            Route("/forget/{learner:int}", self.forget, methods=["POST"]),
            Route("/new-code", self.new_code, methods=["POST"]),
            Route("/api/join", self.join, methods=["POST"]),
            Route("/api/events", self.events, methods=["POST"]),
            *self.room.login_routes,
        ]
        inner = [Mount(self.room.prefix, routes=routes)] if self.room.prefix else routes
        failed = {sqlite3.Error: _report_disk_error}
        return Starlette(routes=inner, lifespan=self.lifespan, exception_handlers=failed)

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        store, board = self.room.store, self.room.board
        self._set_learners(store.learners())
        for happened in store.stored_events():
            board.apply_event(happened)
        work = (store.write(), self._watch_file(), self.room.connections.sweep())
        tasks = [asyncio.create_task(each) for each in work]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()

    def _set_learners(self, learners: Sequence[Learner]) -> None:
        """Accept posts only from these learners, and show only these learners."""
        kept = {learner.id for learner in learners}
        for id in set(self.room.board.names) - kept:
            self.room.board.remove(id)
        self.by_token = {learner.token: learner for learner in learners}
        for learner in learners:
            if learner.id not in self.room.board.names:
                self.room.board.add_learner(learner)

    async def _watch_file(self) -> None:
        """Apply changes made to the file by the teacher's commands."""
        store = self.room.store
        seen = store.version()
        while True:
            await asyncio.sleep(FILE_POLL_S)
            with suppress(sqlite3.Error):  # the disk is full, which posts report
                version = await store.run_in_disk_thread(store.version)
                if version != seen:
                    self.code = await store.run_in_disk_thread(store.secret, CODE)
                    self._set_learners(await store.run_in_disk_thread(store.learners))
                    seen = version

    def is_known(self, request: Request) -> bool:
        """Return whether a request comes from the teacher or from a joined learner."""
        return self._is_teacher(request) or token_digest(_bearer_token(request)) in self.by_token

    # --- for learners ----------------------------------------------------------------------------

    async def show_about(self, request: Request) -> Response:
        """Show learners, before they join, which data is sent."""
        return _render("about.html", what=WHAT_IS_SENT, address=self.room.address)

    async def join(self, request: Request) -> Response:
        """Add a learner, or rename a joined learner."""
        message = await _read_body(request, JoinRequest, MAX_JOIN_BYTES)
        token, user = _bearer_token(request), ""
        known = self.by_token.get(token_digest(token)) if token else None
        right = hmac.compare_digest(message.code.strip().lower().encode(), self.code.encode())
        if self.room.find_login is not None and token and not (known or right):
            user = await self.room.find_login(token)
        if not (known or right or user):
            raise HTTPException(403, "This is not the room's code.")
        if known and self.room.find_login is not None:
            user = known.name  # a user cannot take another user's name
        name = _displayable_name(user or message.name)
        if known:
            learner, mine = await self.room.store.rename(known, name), token
        elif len(self.by_token) >= MAX_LEARNERS:
            raise HTTPException(
                429,
                f"{MAX_LEARNERS:,} learners have joined, which is the maximum. Tell your teacher.",
            )
        else:
            if not user:  # a user of JupyterHub remains one learner after joining again
                self._count_join(request)
            mine = secrets.token_hex(32)
            learner = await self.room.store.join(name, mine, user or None)
            # if a user joins again, the old token becomes invalid
            self.by_token = {t: who for t, who in self.by_token.items() if who.id != learner.id}
        self.by_token[learner.token] = learner
        self.room.board.add_learner(learner)
        return _json_response(JoinReply(mine, self.room.board.names[learner.id]))

    def _count_join(self, request: Request) -> None:
        """Count a new learner from an address. Raise HTTPException above MAX_JOINS_PER_MINUTE."""
        now = time.monotonic()
        for address in [a for a, joins in self.joins.items() if now - joins[-1] > 60]:
            del self.joins[address]
        joins = self.joins[network_key(request.client.host if request.client else "")]
        while joins and now - joins[0] > 60:
            joins.popleft()
        if len(joins) >= MAX_JOINS_PER_MINUTE:
            raise HTTPException(
                429,
                f"{MAX_JOINS_PER_MINUTE} learners have joined from your network address within a minute. "
                "Wait a minute, then join again.",
            )
        joins.append(now)

    async def events(self, request: Request) -> Response:
        """Store a learner's events. Answer once they are on the disk."""
        learner = self.by_token.get(token_digest(_bearer_token(request)))
        if learner is None:
            raise HTTPException(401, _UNKNOWN_LEARNER)
        message = await _read_body(request, EventBatch, MAX_BYTES)
        try:
            new = await self.room.store.add(learner.id, message.events)
        except TooManyEvents:
            raise HTTPException(429, "You have sent more data than the board stores.") from None
        except sqlite3.IntegrityError:  # the learner was removed while the post was being stored
            raise HTTPException(401, _UNKNOWN_LEARNER) from None
        for happened in new:
            self.room.board.apply_event(happened)
        return _json_response(StoredReply())

    # --- for the teacher ---------------------------------------------------------------------------

    async def enter_board(self, request: Request) -> Response:
        """Move the key from the printed address to a cookie, which other pages cannot read."""
        if not _is_equal(request.query_params.get("key", ""), self.room.key):
            raise HTTPException(403, "This is not the teacher's address.")
        return redirect_teacher(self.room)

    def _is_teacher(self, request: Request) -> bool:
        return _is_equal(request.cookies.get(_COOKIE, ""), self.room.key)

    def _require_teacher(self, request: Request) -> None:
        if not self._is_teacher(request):
            where = f"{self.room.prefix}/login" if self.room.login_routes else ""
            raise HTTPException(
                303 if where else 403,
                "This page is for the teacher. Open the address printed by `course room serve`.",
                {"Location": where} if where else None,
            )

    async def page(self, request: Request) -> Response:
        """Show the board or, for "projected", its public part."""
        self._require_teacher(request)
        projected = request.url.path.endswith("projected")
        return _render(
            "board.html",
            projected=projected,
            address=self.room.address,
            code="" if self.room.find_login else self.code,
            exercises=[
                {"name": e.name, "number": e.number, "title": e.title, "notebook": e.notebook}
                for e in self.room.board.exercises.values()
            ],
        )

    async def send_style(self, request: Request) -> Response:
        return Response(PAGE_STYLE.read_bytes(), media_type="text/css")

    async def send_asset(self, request: Request) -> Response:
        kind = {"css": "text/css", "js": "text/javascript"}.get(request.path_params["kind"])
        if kind is None:
            raise HTTPException(404)
        return Response(
            (PAGE_FOLDER / f"board.{request.path_params['kind']}").read_bytes(), media_type=kind
        )

    async def news(self, request: Request) -> Response:
        """Stream news to a page as server-sent events."""
        self._require_teacher(request)
        if len(self.room.board.pages) >= MAX_PAGES:
            raise HTTPException(429, f"The board is open in {MAX_PAGES} windows: close some.")
        stream = self._news("projected" in request.query_params)
        return StreamingResponse(
            stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
        )

    async def _news(self, projected: bool) -> AsyncIterator[bytes]:
        board, told, told_at = self.room.board, b"", 0.0
        with _open_page(board) as mine:
            while True:
                now = time.time()
                found = board.projected_news(now) if projected else board.news(mine, now)
                said = msgspec.json.encode(found)
                # Send at least the minutes, even if there is no news, because only a write detects that a
                # page was closed.
                if said != told or now - told_at > KEEP_ALIVE_S:
                    yield b"data: " + said + b"\n\n"
                    told, told_at = said, now
                await asyncio.sleep(NEWS_INTERVAL_S)

    async def show_play(self, request: Request) -> Response:
        """Show a mistake made by some learner. The mistake's program runs once, on this machine."""
        self._require_teacher(request)
        mistake = self.room.board.shared_mistakes.get(request.path_params["key"])
        if mistake is None:
            raise HTTPException(404, "No learner makes this mistake.")
        async with self.play_lock:  # each run uses all cores for a moment
            if mistake.key not in self.rendered_mistakes:
                self.rendered_mistakes[mistake.key] = await _run_mistake(mistake)
        return HTMLResponse(
            self.rendered_mistakes[mistake.key], headers={"Content-Security-Policy": _PLAYER_POLICY}
        )

    async def lower_hand(self, request: Request) -> Response:
        """Lower a hand after the teacher has helped."""
        self._require_teacher_page(request)
        learner = request.path_params["learner"]
        if learner in self.room.board.hands:
            down = HandEvent(secrets.token_hex(16), up=False)
            for happened in await self.room.store.add(learner, [down]):
                self.room.board.apply_event(happened)
        return Response(status_code=204)

    async def forget(self, request: Request) -> Response:
        """Remove a learner and all data stored about them."""
        self._require_teacher_page(request)
        store, learner = self.room.store, request.path_params["learner"]
        if learner not in self.room.board.names:
            raise HTTPException(404, "No learner has this number.")
        await store.run_in_disk_thread(store.forget, learner)
        self._set_learners(await store.run_in_disk_thread(store.learners))
        return Response(status_code=204)

    async def new_code(self, request: Request) -> Response:
        """Create a new code, which replaces the old code."""
        self._require_teacher_page(request)
        self.code = await self.room.store.run_in_disk_thread(self.room.store.replace_code)
        return Response(status_code=204)

    def _require_teacher_page(self, request: Request) -> None:
        self._require_teacher(request)
        # Pages of other origins cannot send this header without a preflight request, which is refused.
        if request.headers.get("x-room") != "board":
            raise HTTPException(403, "Only the board's page can request this.")


@contextmanager
def _open_page(board: Board) -> Iterator[Any]:
    mine = board.open_page()
    try:
        yield mine
    finally:
        board.pages[:] = [each for each in board.pages if each is not mine]


async def _run_mistake(mistake: SharedMistake) -> str:
    """Run a known mistake in a separate process. Return its page. Raise HTTPException if that fails."""
    with tempfile.TemporaryDirectory(prefix="real-ranks-room-") as folder:
        file = Path(folder) / "page.html"
        words = [mistake.exercise, mistake.title, str(file)]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "helpers.room.play",
            *words,
            cwd=PAGE_FOLDER.parents[2],
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
        )
        try:
            await asyncio.wait_for(process.wait(), PLAY_TIMEOUT_S)
        except (TimeoutError, asyncio.CancelledError) as error:
            process.kill()
            await process.wait()
            if isinstance(error, asyncio.CancelledError):
                raise
        if not file.exists():
            raise HTTPException(500, "The mistake could not be run: the terminal shows the reason.")
        return file.read_text(encoding="utf-8")


def _render(template: str, **values: Any) -> Response:
    return HTMLResponse(
        render_page(template, **values), headers={"Content-Security-Policy": _PAGE_POLICY}
    )


def _json_response(message: msgspec.Struct) -> Response:
    return Response(msgspec.json.encode(message), media_type="application/json")


async def _report_disk_error(request: Request, error: Exception) -> Response:
    return PlainTextResponse("The board's disk is full, or cannot be written.", 503)


async def _read_body(request: Request, kind: type[Any], max_bytes: int) -> Any:
    """Read and decode a post of at most `max_bytes` bytes.

    Raise HTTPException if the post is too large, too slow, or of a different kind.
    """
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > max_bytes:
                    raise HTTPException(413, f"A post may have at most {max_bytes:,} bytes.")
        return msgspec.json.decode(bytes(body), type=kind)
    except TimeoutError:
        raise HTTPException(408, "The post did not arrive in time.") from None
    except ClientDisconnect:
        raise HTTPException(400) from None
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise HTTPException(400, f"This is not a post to the board: {error}") from None


def _bearer_token(request: Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token if scheme.lower() in {"bearer", "token"} else ""


def _is_equal(text: str, other_text: str) -> bool:
    return hmac.compare_digest(text.encode("utf-8", "replace"), other_text.encode())


def _displayable_name(text: str) -> str:
    """Return a displayable name: a short line without invisible characters and piles of accents."""
    shown, marks = "", 0
    for c in unicodedata.normalize("NFC", text):
        category = unicodedata.category(c)
        marks = marks + 1 if category == "Mn" else 0
        if category[0] == "C" or c in _INVISIBLE:
            shown += " "
        elif marks <= _MAX_COMBINING_MARKS:
            shown += c
    return " ".join(shown.split())[:_MAX_NAME_CHARS].strip() or "someone"


class _ConnectionGate:
    """Records the connections of known clients, and admits only these if there are too many connections."""

    def __init__(self, service: _Service, app: ASGIApp) -> None:
        self.service = service
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            connections = self.service.room.connections
            if self.service.is_known(Request(scope)):
                if scope["client"] is not None:
                    connections.mark_known(tuple(scope["client"]))
            elif connections.is_full:
                said = PlainTextResponse("The board has too many connections. Try again.", 503)
                return await said(scope, receive, send)
        await self.app(scope, receive, send)


class _SecurityHeaders:
    """Adds headers to every answer, to prevent guessing types, caching, and leaking addresses."""

    _ADDED_HEADERS = (
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
        (b"cache-control", b"no-store"),
    )

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *self._ADDED_HEADERS]
            await send(message)

        await self.app(scope, receive, answer)
