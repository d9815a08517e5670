"""Walk through the slides of a deck in a browser, and say what does not fit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page

WIDTH, HEIGHT = 1280, 720
LEGIBLE = 0.6
"""The zoom below which a slide is too small to read from the back of a room."""

_LOOK = """() => {
  const slide = Reveal.getCurrentSlide(), body = slide.querySelector(".body");
  const content = slide.querySelector(".content");
  const box = slide.getBoundingClientRect(), end = body.getBoundingClientRect();
  const wide = [...slide.querySelectorAll("pre, table, img, math, svg, .body, h2")].filter((e) =>
    e.getBoundingClientRect().right > box.right
    || e.scrollWidth > e.clientWidth + 1 && e.matches("pre, .body"));
  return {
    down: Math.max(0, body.scrollHeight - body.clientHeight - 1, Math.round(end.bottom - box.bottom)),
    across: wide.length, zoom: parseFloat(content.style.zoom || 1), last: Reveal.isLastSlide(),
    title: slide.querySelector("h2").innerText, kind: slide.className.split(" ")[0],
  };
}"""


@dataclass(frozen=True)
class Look:
    """One slide as the browser shows it. down: pixels below its edge; across: parts beyond its side."""

    number: int
    title: str
    kind: str
    down: int
    across: int
    zoom: float

    @property
    def fits(self) -> bool:
        return not self.down and not self.across and self.zoom >= LEGIBLE


def looks(page: Page, deck: Path, shots: Path | None = None) -> list[Look]:
    """Show each slide of a deck; return how it looks. shots: a folder for a picture of each."""
    page.goto(deck.as_uri())
    page.wait_for_function("window.Reveal && Reveal.isReady()")
    found = []
    while True:
        page.evaluate(
            "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )
        seen = page.evaluate(_LOOK)
        last = seen.pop("last")
        found.append(Look(len(found) + 1, **seen))
        if shots is not None:
            page.screenshot(path=shots / f"{deck.stem[:2]}-{len(found):03}.png")
        if last:
            return found
        page.evaluate("() => Reveal.next()")
