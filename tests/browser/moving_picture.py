"""Record the moving picture of README: `python -m tests.browser.moving_picture`.

    notebook 00's first run -> break_it leaves out a send -> the player, step by step -> docs/deadlock.webp

Each frame is a screenshot of the real player in a browser, of a run that happened a moment ago.
"""

from __future__ import annotations

import shutil
import tempfile
from io import BytesIO
from pathlib import Path

import torch
import torch.distributed as dist
from PIL import Image
from playwright.sync_api import sync_playwright

from helpers.explorers.break_it import FaultExplorer, Faults
from helpers.views.timeline import timeline
from tests.browser.conftest import BROWSERS, QUIET

PICTURE = Path(__file__).parents[2] / "docs" / "deadlock.webp"
WIDTH, HEIGHT = 900, 760
STEP_MS, LAST_MS = 700, 4000


def add_up_by_hand(rank: int, world_size: int) -> float:
    """Add up by hand, like the first cell of notebook 00."""
    total = torch.tensor([10**rank])
    if rank > 0:
        sum_so_far = torch.zeros_like(total)
        dist.recv(sum_so_far, src=rank - 1)
        total += sum_so_far
    if rank < world_size - 1:
        dist.send(total, dst=rank + 1)
    dist.broadcast(total, src=world_size - 1)
    return total.item()


def frames() -> list[Image.Image]:
    """Return one picture for each step of a run in which rank 1 does not send."""
    run = FaultExplorer(add_up_by_hand, Faults(4)).run(Faults(4, dropped_call=(1, 1)))
    picture = timeline(run)
    assert picture.live is not None
    html = picture.live()
    browser = next(filter(None, map(shutil.which, BROWSERS)))
    with (
        tempfile.TemporaryDirectory() as folder,
        sync_playwright() as driver,
        driver.chromium.launch(executable_path=browser, args=QUIET) as chromium,
    ):
        path = Path(folder, "run.html")
        style = "font: 14px system-ui, sans-serif; margin: 12px; background: #fff"
        path.write_text(f'<meta charset="utf-8"><body style="{style}">{html}', encoding="utf-8")
        page = chromium.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(path.as_uri())
        page.get_by_role("button", name="Play").first.wait_for()
        slider = page.get_by_role("slider").first
        steps = int(slider.get_attribute("max") or slider.get_attribute("aria-valuemax") or 0)
        slider.press("Home")
        found = [_shot(page.screenshot())]
        for _ in range(steps):
            page.keyboard.press("ArrowRight")
            page.wait_for_timeout(1500)  # wait until the message in flight arrives
            found.append(_shot(page.screenshot()))
    return found


def _shot(png: bytes) -> Image.Image:
    return Image.open(BytesIO(png)).convert("RGB")


if __name__ == "__main__":
    first, *others = frames()
    times = [STEP_MS] * len(others) + [LAST_MS]
    first.save(PICTURE, append_images=others, save_all=True, duration=times, loop=0, quality=70)
    print(f"{PICTURE}: {len(others) + 1} frames, {PICTURE.stat().st_size // 1024} kB")
