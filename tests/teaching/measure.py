"""Walk through the slides of a deck in a browser, and report everything that does not fit."""

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

# A player is drawn when its slide is first shown, and then made to fit.
_SETTLED = """async () => {
  const content = Reveal.getCurrentSlide().querySelector(".content");
  for (let same = 0, before = "", frames = 0; same < 4 && frames < 120; frames += 1) {
    await new Promise(requestAnimationFrame);
    const now = `${content.offsetHeight} ${content.style.zoom}`;
    same = now === before ? same + 1 : 0;
    before = now;
  }
}"""


@dataclass(frozen=True)
class SlideSize:
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


def measure_slides(page: Page, deck: Path, shots: Path | None = None) -> list[SlideSize]:
    """Show each slide of a deck, and return its measurements. shots: a folder for pictures of slides."""
    page.goto(deck.as_uri())
    page.wait_for_function("window.Reveal && Reveal.isReady()")
    page.wait_for_load_state("networkidle")
    found = []
    while True:
        page.evaluate(_SETTLED)
        seen = page.evaluate(_LOOK)
        last = seen.pop("last")
        found.append(SlideSize(len(found) + 1, **seen))
        if shots is not None:
            page.screenshot(path=shots / f"{deck.stem[:2]}-{len(found):03}.png")
        if last:
            return found
        page.evaluate("() => Reveal.next()")
