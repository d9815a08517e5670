"""The server extension that replaces `course lab` on a hub, in a real Jupyter server."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import psutil
import pytest
from jupyter_server.base.websocket import WS_PING_INTERVAL
from tornado.websocket import websocket_connect

from helpers.course.hub import HUB
from helpers.course.workspace import LOOK, set_up_jupyter
from tests.browser.lab import Lab, running_lab
from tests.kernel.session import wait_until

ENABLED = ("--ServerApp.jpserver_extensions=helpers.course.hub=True",)


def get_json(lab: Lab, path: str) -> Any:
    with urllib.request.urlopen(lab.url(path), timeout=30) as answer:
        return json.loads(answer.read())


def kernel_of(lab: Lab) -> list[str]:
    return list(get_json(lab, "api/kernelspecs")["kernelspecs"]["python3"]["spec"]["argv"])


def words_of(process: psutil.Process) -> list[str]:
    """Return a process's command line; "" if it has just exited."""
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Return a person's folder and their settings' folder."""
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    home.mkdir()
    monkeypatch.setenv("REAL_RANKS_WORK", str(work))
    return work, home


@pytest.mark.extended
def test_hub_server_provides_notebooks_and_map(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    work, _ = folders
    monkeypatch.setenv(HUB, "1")
    (work / "02_blocking_p2p.ipynb").write_text("{}")  # the person has already begun it
    with running_lab(*folders, options=ENABLED) as lab:
        names = {path.name for path in work.iterdir()}
        assert {"home.ipynb", "00_start_here.ipynb", "23_capstone.ipynb"} <= names
        assert (work / "02_blocking_p2p.ipynb").read_text() == "{}"
        assert stat.S_IMODE(work.stat().st_mode) == 0o700
        assert any("helpers.course.kernel" in word for word in kernel_of(lab))
        with urllib.request.urlopen(lab.url("lab"), timeout=30) as page:
            text = page.read().decode()
        assert "custom/custom.css" in text and "/real-ranks/map" in text
        assert "static/save.js" in text  # the extension that saves passed answers


@pytest.mark.extended
@pytest.mark.parametrize("options", [ENABLED, LOOK])
def test_kernels_and_terminals_prefer_environment_programs(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.setenv(HUB, "1")
    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
    shell = os.environ.get("SHELL") or "/bin/sh"
    own = f"{Path(sys.executable).parent}{os.pathsep}"

    def found(word: str) -> list[psutil.Process]:
        below = psutil.Process().children(recursive=True)
        return [p for p in below if word in " ".join(words_of(p))]

    with running_lab(*folders, options=options) as lab:
        for what in ("kernels", "terminals"):
            request = urllib.request.Request(lab.url(f"api/{what}"), data=b"{}", method="POST")
            urllib.request.urlopen(request, timeout=30).close()
        # first /bin/sh, which reads the profile; then the interactive shell, which replaces it
        wait_until(lambda: any(words_of(p) == [shell] for p in found(shell)), 30)
        (terminal,) = (p for p in found(shell) if words_of(p) == [shell])
        kernel, *_ = found("helpers.course.kernel")
        assert kernel.environ()["PATH"].startswith(own)
        assert terminal.environ()["PATH"].startswith(own)


@pytest.mark.extended
def test_extension_does_nothing_outside_hub(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(HUB, raising=False)
    with running_lab(*folders, options=ENABLED) as lab:
        assert not [path for path in folders[0].iterdir() if path.suffix == ".ipynb"]
        assert not any("helpers.course.kernel" in word for word in kernel_of(lab))
        with pytest.raises(urllib.error.HTTPError, match="404"):
            get_json(lab, "real-ranks/map")


@pytest.mark.extended
def test_lab_uses_course_kernel_without_copies(
    folders: tuple[Path, Path],
) -> None:
    with running_lab(*folders, options=LOOK) as lab:
        assert any("helpers.course.kernel" in word for word in kernel_of(lab))
        assert not [path for path in folders[0].iterdir() if path.suffix == ".ipynb"]


@pytest.mark.soak
def test_idle_kernel_keeps_connection_open(folders: tuple[Path, Path]) -> None:
    with running_lab(*folders, options=LOOK) as lab:
        request = urllib.request.Request(lab.url("api/kernels"), data=b"{}", method="POST")
        with urllib.request.urlopen(request, timeout=30) as answer:
            kernel = json.loads(answer.read())["id"]
        url = lab.url(f"api/kernels/{kernel}/channels").replace("http", "ws", 1)
        assert None not in asyncio.run(_heard(url))
    assert "ping_timeout" not in (folders[1] / "lab.log").read_text()


async def _heard(url: str) -> list[object]:
    """Return a message on a kernel's connection within two of Jupyter's intervals; None if it was closed."""
    heard: list[object] = []
    socket = await websocket_connect(url, on_message_callback=heard.append)
    await asyncio.sleep(2 * WS_PING_INTERVAL / 1000 + 5)
    before = list(heard)
    socket.close()
    return before


def test_adds_extension_and_keeps_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    own = tmp_path / "etc" / "jupyter" / "labconfig" / "page_config.json"
    own.parent.mkdir(parents=True)
    own.write_text("{}")
    set_up_jupyter()
    assert own.read_text() == "{}"
    file = tmp_path / "etc" / "jupyter" / "jupyter_server_config.d" / "real_ranks.json"
    enabled = json.loads(file.read_text())
    assert enabled == {"ServerApp": {"jpserver_extensions": {"helpers.course.hub": True}}}
