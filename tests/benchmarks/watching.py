"""Measure the player of a long run in a browser, and the live lanes of a cell that prints a lot."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from time import perf_counter

from playwright.sync_api import Page, sync_playwright

from helpers.trace.events import Event, Trace
from helpers.views.timeline import timeline
from tests.benchmarks.learners import IMPORTS, kernels, value
from tests.benchmarks.timing import Figure, median, spread
from tests.browser.conftest import BROWSERS, QUIET

RANKS, CALLS, FEW = 16, 2_000, 20
DRAGS, CELLS, LINES = 60, 5, 10_000

_DRAG = """drags => {
    const slider = document.querySelector(".rr-page").shadowRoot.querySelector("input[type=range]");
    return Array.from({length: drags}, (_, n) => {
        const start = performance.now();
        slider.value = Math.round((slider.max * (n + 0.5)) / drags);
        slider.dispatchEvent(new Event("input"));
        return (performance.now() - start) / 1000;
    });
}"""
_TALK = f"""
def talk(rank, n):
    for line in range({LINES}):
        print("rank", rank, "line", line, flush=True)
        if line % 40 == 0:
            dist.barrier()  # so that it lasts long enough to be watched
"""


def dragging() -> Iterator[Figure]:
    """Drag the player's slider through a long run, and through a short one, whole and zoomed in.

    Only the time of the page's script is measured, not the painting after it.
    """
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        return
    with (
        sync_playwright() as driver,
        driver.chromium.launch(executable_path=browser, args=QUIET) as chromium,
    ):
        page = chromium.new_page(viewport={"width": 1280, "height": 900})
        for zoom in ("1", "20"):
            few, many = _dragged(page, FEW, zoom), _dragged(page, CALLS, zoom)
            yield Figure(
                f"a step of the player's slider, {RANKS} ranks, {CALLS:,} calls each, zoom {zoom}x",
                spread(many),
                f"{FEW} calls each {spread(few)}",
                f"{median(many) / median(few):.1f}x",
                "≤ 16 ms",
            )


def _dragged(page: Page, calls: int, zoom: str) -> list[float]:
    live = timeline(_ring(calls)).live
    assert live is not None
    page.set_content(f"<!doctype html><body>{live()}")
    page.get_by_label("Zoom").select_option(zoom)
    return [float(time) for time in page.evaluate(_DRAG, DRAGS)[5:]]


def _ring(calls: int) -> Trace:
    """Make a run in which each rank sends to the next rank and receives from the previous one."""
    world = tuple(range(RANKS))
    events = []
    for rank in world:
        for n in range(calls):
            to, op = (rank + 1) % RANKS, "recv" if n % 2 else "send"
            start = 1_000 * (10 * n + rank % 3)
            peer = (rank - 1) % RANKS if n % 2 else to
            events.append(
                Event(
                    *(rank, n, op),
                    call=op,
                    nbytes=400,
                    group="world",
                    group_ranks=world,
                    peer=peer,
                    start_ns=start,
                    wait_ns=start,
                    end_ns=start + 8_000,
                )
            )
    return Trace(RANKS, tuple(events), 0)


def printing() -> Iterator[Figure]:
    """Run a cell whose ranks print a lot, with and without live lanes, in a separate kernel."""
    with kernels(1) as ((_, client),):
        value(client, IMPORTS)
        value(client, _TALK)
        times: dict[str, list[float]] = {"0": [], "1": []}
        for turn in range(2 * (CELLS + 1)):
            live = str(turn % 2)
            value(client, f'import os; os.environ["REAL_RANKS_LIVE"] = "{live}"')
            start = perf_counter()
            value(client, f"run = launch(talk, {RANKS}, timeout=120); None")
            if turn > 1:
                times[live].append(perf_counter() - start)
    yield Figure(
        f"{RANKS} ranks print {LINES:,} lines each, live lanes",
        spread(times["1"]),
        f"without {spread(times['0'])}",
        f"{median(times['1']) / median(times['0']):.2f}x",
        "≤ 1.1x",
    )
