"""Use a hub like people with browsers: log in, open a notebook, run cells."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlencode

from tornado.httpclient import AsyncHTTPClient, HTTPRequest, HTTPResponse
from tornado.websocket import WebSocketClientConnection, websocket_connect

from tests.hub.running import Hub, User

REQUEST_S, SPAWN_S, CELL_S, CLOSE_S = 120.0, 300.0, 400.0, 5.0


@dataclass
class Cell:
    """One cell's output, and its run time."""

    status: str = ""
    text: str = ""
    seconds: float = 0.0


@dataclass
class Person:
    """One user of a hub, with a token and at most one kernel."""

    hub: Hub
    user: User
    token: str = ""
    kernel: str = ""
    socket: WebSocketClientConnection | None = None
    said: asyncio.Queue[str | bytes | None] = field(default_factory=asyncio.Queue)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def server(self) -> str:
        return f"{self.hub.address}/user/{self.user.name}"

    async def ask(self, url: str, method: str = "GET", body: Any = None) -> HTTPResponse:
        """Send a request with this person's token; return the answer, even if it is an error."""
        headers = {"Authorization": f"token {self.token}"} if self.token else {}
        sent = json.dumps(body) if body is not None else "" if method == "POST" else None
        request = HTTPRequest(
            url,
            method,
            headers,
            sent,
            connect_timeout=REQUEST_S,
            request_timeout=REQUEST_S,
            follow_redirects=False,
        )
        return await AsyncHTTPClient(max_clients=100).fetch(request, raise_error=False)

    async def log_in(self) -> None:
        """Log in with the password, and wait until this person's server answers."""
        began = time.monotonic()
        await self._fill_in_the_form()
        own = f"{self.hub.address}/hub/api/users/{self.user.name}"
        asked = {"auth": {"username": self.user.name, "password": self.user.password}}
        answer = await self.ask(f"{own}/tokens", "POST", asked)
        assert answer.code == 201, (answer.code, answer.body)
        self.token = json.loads(answer.body)["token"]
        answer = await self.ask(f"{own}/server", "POST")
        while (
            answer.code == 429
        ):  # the recipe limits the number of servers starting at once; a browser would also wait
            await asyncio.sleep(1.0)
            answer = await self.ask(f"{own}/server", "POST")
        assert answer.code in (201, 202), (answer.code, answer.body)
        while (await self.ask(f"{self.server}/api/status")).code != 200:
            assert time.monotonic() - began < SPAWN_S, self.hub.log.read_text()[-4000:]
            await asyncio.sleep(0.25)
        self.seconds["log in"] = time.monotonic() - began

    async def _fill_in_the_form(self) -> None:
        url = f"{self.hub.address}/hub/login"
        answer = await self.ask(url)
        cookies = SimpleCookie()
        for line in answer.headers.get_list("Set-Cookie"):
            cookies.load(line)
        filled = {"username": self.user.name, "password": self.user.password}
        filled["_xsrf"] = cookies["_xsrf"].value
        request = HTTPRequest(
            url,
            "POST",
            {"Cookie": "; ".join(f"{name}={cookie.value}" for name, cookie in cookies.items())},
            urlencode(filled),
            connect_timeout=REQUEST_S,
            request_timeout=REQUEST_S,
            follow_redirects=False,
        )
        answer = await AsyncHTTPClient(max_clients=100).fetch(request, raise_error=False)
        assert answer.code == 302, (answer.code, self.hub.log.read_text()[-4000:])

    async def open(self, notebook: str) -> None:
        """Open a notebook in this person's folder, and wait until its kernel has answered."""
        began = time.monotonic()
        path = f"real-ranks/{notebook}"
        asked = {
            "path": path,
            "name": notebook,
            "type": "notebook",
            "kernel": {"name": "python3"},
        }
        answer = await self.ask(f"{self.server}/api/sessions", "POST", asked)
        assert answer.code == 201, (answer.code, answer.body)
        self.kernel = json.loads(answer.body)["kernel"]["id"]
        url = f"{self.server.replace('http', 'ws', 1)}/api/kernels/{self.kernel}/channels"
        headers = {"Authorization": f"token {self.token}"}
        # An unlimited queue, because tornado would not answer the server's pings while a queue is full.
        self.socket = await websocket_connect(
            HTTPRequest(url, headers=headers, connect_timeout=SPAWN_S, request_timeout=SPAWN_S),
            on_message_callback=self.said.put_nowait,
        )
        assert (await self.run("None")).status == "ok"
        self.seconds["open a notebook"] = time.monotonic() - began

    async def run(self, source: str) -> Cell:
        """Run a cell to its end."""
        assert self.socket is not None
        began, cell, sent = time.monotonic(), Cell(), uuid.uuid4().hex
        header = {
            "msg_id": sent,
            "msg_type": "execute_request",
            "version": "5.3",
            "username": self.user.name,
            "session": sent,
            "date": "",
        }
        content = {"code": source, "silent": False, "store_history": True, "allow_stdin": False}
        whole = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
        await self.socket.write_message(json.dumps({**whole, "channel": "shell", "buffers": []}))
        idle = False
        async with asyncio.timeout(CELL_S):
            while not (idle and cell.status):
                said = await self.said.get()
                assert isinstance(said, str), "the connection to the kernel has closed"
                message = json.loads(said)
                if message["parent_header"].get("msg_id") != sent:
                    continue
                idle = _note(message, cell) or idle
        cell.seconds = time.monotonic() - began
        return cell

    async def value(self, source: str) -> str:
        """Run a cell that must succeed, and return its whole output."""
        cell = await self.run(source)
        assert cell.status == "ok", cell.text
        return cell.text

    async def close(self) -> None:
        """Close the page, leaving the server and the kernel running."""
        if self.socket is not None:
            self.socket.close()
            with suppress(TimeoutError):  # None: the connection has closed
                async with asyncio.timeout(CLOSE_S):
                    while await self.said.get() is not None:
                        pass


def _note(message: dict[str, Any], cell: Cell) -> bool:
    """Store a message's output; return whether it reports that the kernel is idle again."""
    kind, content = message["msg_type"], message["content"]
    if kind == "stream":
        cell.text += content["text"]
    elif kind in {"execute_result", "display_data"}:
        cell.text += content["data"].get("text/plain", "") + "\n"
    elif kind == "error":
        cell.text += "\n".join(content["traceback"])
    elif kind == "execute_reply":
        cell.status = content["status"]
    return bool(kind == "status" and content["execution_state"] == "idle")
