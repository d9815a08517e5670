"""The board as a service of a real JupyterHub: users have joined, and administrators see the board."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import msgspec
import pytest

from helpers.course.workspace import find_workspace
from helpers.room.store import Store

pytest.importorskip("jupyterhub", reason="jupyterhub is not installed")
if shutil.which("configurable-http-proxy") is None:
    pytest.skip("JupyterHub's proxy is not installed", allow_module_level=True)

DEADLINE_S = 90
TOKENS = {"ana": "a" * 32, "root": "b" * 32}
CONFIG = """
c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{hub}"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api}"
c.JupyterHub.db_url = "sqlite:///{folder}/hub.sqlite"
c.JupyterHub.cookie_secret_file = "{folder}/cookie"
c.ConfigurableHTTPProxy.pid_file = "{folder}/proxy.pid"
c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = "pass"
c.Authenticator.allow_all = True
c.Authenticator.admin_users = {{"root"}}
c.JupyterHub.spawner_class = "simple"
c.JupyterHub.api_tokens = {tokens}
c.JupyterHub.services = [dict(
    name="room",
    url="http://127.0.0.1:{service}",
    command=[{python!r}, "-m", "helpers.course.cli", "room", "serve", "--hub",
             "--file", "{folder}/room.sqlite3"],
    cwd={root!r},
    oauth_no_confirm=True,
)]
c.JupyterHub.load_roles = [dict(
    name="user", scopes=["self", "access:services!service=room"]
)]
"""


@dataclass(frozen=True)
class Hub:
    url: str
    folder: Path

    @property
    def room(self) -> str:
        return f"{self.url}/services/room"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    """Start a hub with its proxy, which starts the board."""
    port, inner, api, service = free_ports(4)
    config = tmp_path / "jupyterhub_config.py"
    config.write_text(
        CONFIG.format(
            port=port,
            hub=inner,
            api=api,
            service=service,
            folder=tmp_path,
            tokens={token: user for user, token in TOKENS.items()},
            python=sys.executable,
            root=str(find_workspace().root),
        )
    )
    log = tmp_path / "hub.log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterhub", "-f", str(config)],
            cwd=tmp_path,
            stdout=said,
            stderr=said,
        )
    found = Hub(f"http://127.0.0.1:{port}", tmp_path)
    try:
        deadline = time.monotonic() + DEADLINE_S
        while not answers(f"{found.room}/"):
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(0.2)
        yield found
    finally:
        process.terminate()
        process.wait(DEADLINE_S)


def free_ports(count: int) -> list[int]:
    """Return unused ports, found by opening all at once, so that they differ."""
    with ExitStack() as stack:
        found = [stack.enter_context(closing(socket.socket())) for _ in range(count)]
        for each in found:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in found]


def answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


@pytest.mark.timeout(180)
def test_hub_joins_users_and_restricts_board(hub: Hub) -> None:
    with logged_in("ana", hub) as (_, refusal):
        assert refusal.status_code == 403 and "administrators" in refusal.text
    program = """
from helpers.room import outbox
outbox.record_check("ping_pong", "wrong", "")
outbox.send_batch()
print(outbox.joined_room().name)
"""
    env = {
        **os.environ,
        "REAL_RANKS_PROGRESS": str(hub.folder / "work" / "progress.json"),
        "REAL_RANKS_ROOM": hub.room,
        "REAL_RANKS_ROOM_TOKEN": token_for_the_room(hub),
        "JUPYTERHUB_API_TOKEN": "",
    }
    words = [sys.executable, "-c", program]
    done = subprocess.run(
        words,
        cwd=find_workspace().root,
        env=env,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert done.stdout == "ana\n", done.stderr
    with closing(Store(hub.folder / "room.sqlite3")) as store:
        assert [each.name for each in store.learners()] == ["ana"]
        assert [each.event.exercise for each in store.stored_events()] == ["ping_pong"]
    # a user keeps the login name
    own = msgspec.json.decode((hub.folder / "work" / ".room.json").read_bytes())
    again = httpx.post(
        f"{hub.room}/api/join",
        json={"name": "root"},
        headers={"Authorization": f"Bearer {own['token']}"},
    )
    assert again.json()["name"] == "ana"
    # a token unknown to the hub
    refused = httpx.post(
        f"{hub.room}/api/join", json={"name": "Eve"}, headers={"Authorization": "Bearer no"}
    )
    assert refused.status_code == 403
    with logged_in("root", hub) as (browser, board):
        assert "Where the class is" in board.text
        with browser.stream("GET", f"{hub.room}/news") as stream:
            assert '"ana"' in next(stream.iter_lines())


def token_for_the_room(hub: Hub) -> str:
    """Return a token with no more rights than the tokens of `give_token`."""
    reply = httpx.post(
        f"{hub.url}/hub/api/users/ana/tokens",
        headers={"Authorization": f"Bearer {TOKENS['root']}"},
        json={"scopes": ["access:services!service=room"]},
    )
    assert reply.status_code == 201, reply.text
    return str(reply.json()["token"])


@contextmanager
def logged_in(user: str, hub: Hub) -> Iterator[tuple[httpx.Client, httpx.Response]]:
    """Log in like a browser, and open the board; return the browser and the page."""
    with httpx.Client(follow_redirects=True, timeout=20) as browser:
        page = browser.get(f"{hub.room}/board")
        token = browser.cookies.get("_xsrf", path="/hub/")
        form = {"username": user, "password": "pass", "_xsrf": token}
        yield browser, browser.post(str(page.url), data=form)
