"""Draw a few kinds of marks as SVG, or as PNG for pages that cannot show SVG.

    marks -> Drawing -> svg(): a page, which may move marks with `at`
                     -> png(): stored notebooks, and reports

`STYLES` defines the look of marks, for the SVG's style sheet and for the painter. A page with a theme sets
`--rr-ink`, `--rr-ground` and, for the purity of colors, `--rr-pure`. Otherwise a drawing is dark on white.
"""

from __future__ import annotations

import base64
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helpers.views.palette import INK, KINDS, Look

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFont import FreeTypeFont

MONO_LETTER_WIDTH = 0.602
"""The width of a letter of the fixed-width font, relative to its size."""
_SANS_LETTER_WIDTH = 0.58
_BACKGROUND = (255, 255, 255)
_OVERSAMPLING = 3
_ARROW_HEAD = 7.0
_MAX_COLORS = 128
_MANY_MARKS = 8_000
"""Number of marks above which they are drawn `_PART_SIZE` at a time. Pages with more elements are slow, and
so are pages that are zoomed in to show a small part of long paths.
"""
_PART_SIZE = 64


@dataclass(frozen=True, slots=True)
class Style:
    """The shares of a mark's color in its area and in its edge.

    The remaining share is the background's color. clear: whether the area is transparent, so that marks below
    it remain visible.
    """

    fill: float = 0.0
    edge: float = 0.0
    width: float = 1.3
    dash: tuple[float, ...] = ()
    clear: bool = False


STYLES = {
    "tint": Style(0.24, 1.0),
    "guilty": Style(0.24, 1.0, 3.6),
    "open": Style(0.1, 1.0, 1.3, (4, 3)),
    "solid": Style(1.0),
    "ribbon": Style(0.13, clear=True),
    "line": Style(edge=1.0),
    "bold": Style(edge=1.0, width=2.6),
    "dashed": Style(edge=1.0, dash=(4, 3)),
    "rule": Style(edge=0.16, width=1.0),
    "word": Style(1.0),
    "quiet": Style(0.68),
    "unscaled": Style(0.68),
}


@dataclass(frozen=True, slots=True)
class Mark(ABC):
    """A mark: its points in pixels, its style, and the look of its kind (None: ink).

    at: the step of each of its x coordinates, for pages that move the mark.
    """

    points: tuple[tuple[float, float], ...]
    style: str
    look: Look | None = None
    at: tuple[int, ...] = ()

    @abstractmethod
    def element(self) -> tuple[str, str, str]:
        """Return the tag of its SVG element, its attributes, and its text."""

    @abstractmethod
    def paint(self, brush: _Brush) -> None:
        """Paint the mark."""

    def outline(self) -> tuple[Sequence[int], Sequence[float]]:
        """Return the steps and the heights of its corners."""
        return self.at, [y for _, y in self.points]


@dataclass(frozen=True, slots=True)
class Box(Mark):
    """A bar between two opposite corners."""

    def element(self) -> tuple[str, str, str]:
        (x, y), (right, bottom) = self.points
        size = f'x="{_num(x)}" y="{_num(y)}" width="{_num(max(1, right - x))}" height="{_num(bottom - y)}"'
        return "rect", size, ""

    def outline(self) -> tuple[Sequence[int], Sequence[float]]:
        (start, end), ((_, y), (_, bottom)) = self.at, self.points
        return (start, end, end, start), (y, y, bottom, bottom)

    def paint(self, brush: _Brush) -> None:
        (x, y), (right, bottom) = self.points
        brush.box(x, y, max(x + 1, right), bottom, self)


@dataclass(frozen=True, slots=True)
class Line(Mark):
    """A straight line, which may end in an arrowhead at its second point."""

    head: bool = False

    def element(self) -> tuple[str, str, str]:
        (x, y), (u, v) = self.points
        head = ' marker-end="url(#rr-head)"' if self.head else ""
        return "line", f'x1="{_num(x)}" y1="{_num(y)}" x2="{_num(u)}" y2="{_num(v)}"{head}', ""

    def paint(self, brush: _Brush) -> None:
        start, end = self.points
        brush.line(start, end, self)
        if self.head:
            brush.head(start, end, self)


@dataclass(frozen=True, slots=True)
class Area(Mark):
    """A polygon."""

    def element(self) -> tuple[str, str, str]:
        return "polygon", f'points="{" ".join(f"{_num(x)},{_num(y)}" for x, y in self.points)}"', ""

    def paint(self, brush: _Brush) -> None:
        brush.area(self.points, self)


@dataclass(frozen=True, slots=True)
class Word(Mark):
    """Text on one line. Its point is the left end, the middle or the right end of its base line.

    A second point and a second step limit its width. If there is less room, the text is not shown.
    """

    text: str = ""
    size: float = 11.0
    anchor: str = "start"
    mono: bool = False
    heavy: bool = False

    @property
    def width(self) -> float:
        return len(self.text) * self.size * (MONO_LETTER_WIDTH if self.mono else _SANS_LETTER_WIDTH)

    @property
    def fits(self) -> bool:
        return len(self.points) < 2 or self.points[0][0] + self.width <= self.points[1][0]

    def element(self) -> tuple[str, str, str]:
        x, y = self.points[0]
        more = f' text-anchor="{self.anchor}"' if self.anchor != "start" else ""
        more += ' font-weight="600"' if self.heavy else ""
        more += ' class="mono"' if self.mono else ""
        more += "" if self.fits else ' display="none"'
        text = escape(self.text, quote=False)
        place = f'x="{_num(x)}" y="{_num(y)}" font-size="{_num(self.size)}"{more}'
        return "text", place, text

    def paint(self, brush: _Brush) -> None:
        if self.fits:
            brush.write(self)


@dataclass(frozen=True)
class Drawing:
    """Marks on a page with a width and a height. A page never moves the marks in `fixed`.

    about: facts about the drawing for a page, as data attributes.
    """

    width: float
    height: float
    marks: tuple[Mark, ...]
    fixed: tuple[Mark, ...] = ()
    about: tuple[tuple[str, float], ...] = ()

    def svg(self, text: str = "") -> str:
        """Write the drawing as a self-contained SVG. text: a description in words."""
        w, h = _num(self.width), _num(self.height)
        about = "".join(f' data-{name}="{_num(value)}"' for name, value in self.about)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}" '
            f'role="img" aria-label="{escape(text)}"{about}><style>{_style_sheet()}</style>'
            '<marker id="rr-head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 .6L8 4L0 7.4z" fill="context-stroke"/>'
            f'</marker><rect class="ground" width="100%" height="100%"/>{_group_marks(self.marks, "moves")}'
            f"{_group_marks(self.fixed, 'stays')}</svg>"
        )

    def still(self, text: str) -> str:
        """Return the drawing as an HTML image, which pages show even without scripts and SVG."""
        data = base64.b64encode(self.svg(text).encode()).decode()
        source = f"data:image/svg+xml;base64,{data}"
        return f'<img src="{source}" alt="{escape(text)}" style="max-width: 100%">'

    def png(self, scale: float = 1.0) -> bytes:
        """Paint the drawing, with `scale` points per pixel."""
        buffer = BytesIO()
        to_palette(self._paint_image(scale)).save(buffer, format="png", optimize=True)
        return buffer.getvalue()

    def save(self, path: Path, text: str) -> None:
        """Write the drawing to a file in the format of its extension."""
        if path.suffix == ".svg":
            path.write_text(self.svg(text), encoding="utf-8")
        else:
            self._paint_image(2.0).save(path)

    def _paint_image(self, scale: float) -> Image:
        from PIL import Image

        size = (math.ceil(self.width * scale), math.ceil(self.height * scale))
        image = Image.new("RGB", (size[0] * _OVERSAMPLING, size[1] * _OVERSAMPLING), _BACKGROUND)
        brush = _Brush(image, scale)
        for mark in (*self.marks, *self.fixed):
            mark.paint(brush)
        return brush.done()


def to_palette(image: Image) -> Image:
    """Reduce an image to a palette, because pictures are stored in notebooks, which learners download.

    The image consists of a few flat colors and the edges of letters, so a palette is large enough.
    """
    from PIL.Image import Dither

    return image.convert("RGB").quantize(_MAX_COLORS, dither=Dither.NONE)


def _group_marks(marks: Sequence[Mark], name: str) -> str:
    """Write marks. Consecutive marks with the same look form a group, so that thousands share class names."""
    many = [
        mark
        for mark in marks
        if len(marks) > _MANY_MARKS and mark.at and not isinstance(mark, Word)
    ]
    pieces: dict[tuple[str, int], list[str]] = {}
    for mark in many:
        steps, ys = mark.outline()
        place = " ".join(f"{step} {_num(y)}" for step, y in zip(steps, ys, strict=True))
        pieces.setdefault((_group_tag(mark), len(ys)), []).append(place)
    parts = [
        f'<g class="{group}"><path data-points="{points}" data-x="{" ".join(places[n:m])}"/></g>'
        for (group, points), places in pieces.items()
        for n, m in ((n, n + _PART_SIZE) for n in range(0, len(places), _PART_SIZE))
    ]
    last = ""
    for mark in marks if not many else (mark for mark in marks if isinstance(mark, Word)):
        group = _group_tag(mark)
        if group != last:
            parts.append(f'{"</g>" if last else ""}<g class="{group}">')
            last = group
        tag, attributes, text = mark.element()
        at = f' data-x="{" ".join(map(str, mark.at))}"' if mark.at else ""
        parts.append(f"<{tag} {attributes}{at}" + (f">{text}</{tag}>" if text else "/>"))
    return f'<g class="{name}">{"".join(parts)}{"</g>" if last else ""}</g>'


def _group_tag(mark: Mark) -> str:
    return f"{mark.look.name if mark.look else 'ink'} {mark.style}"


@cache
def _style_sheet() -> str:
    """Write the style sheet: each kind's color once, and each style as a mix of color and background."""
    ink, ground = f"var(--rr-ink,{INK})", "var(--rr-ground,#fff)"
    rules = [
        "svg{font-family:var(--jp-ui-font-family,system-ui),'DejaVu Sans',sans-serif}",
        f"text{{paint-order:stroke;stroke:{ground}!important;stroke-width:3px}}",
        ".mono{font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace}",
        f".ground{{fill:{ground}}}.ink{{--c:{ink}}}rect{{rx:3px}}",
        *(
            f".{look.name}{{--c:color-mix(in srgb,{look.color} var(--rr-pure,100%),{ink})}}"
            for look in KINDS
        ),
    ]
    for name, style in STYLES.items():
        said = [
            f"{what}:{_mix_color(share, style.clear, ground)}" if share else f"{what}:none"
            for what, share in (("fill", style.fill), ("stroke", style.edge))
        ]
        said += [f"fill-opacity:{style.fill}"] if style.clear else []
        said += [f"stroke-width:{style.width}"] if style.edge else []
        said += [f"stroke-dasharray:{style.dash[0]} {style.dash[1]}"] if style.dash else []
        rules.append(f".{name}{{{';'.join(said)}}}")
    return "".join(rules)


def _mix_color(share: float, clear: bool, ground: str) -> str:
    if share == 1 or clear:
        return "var(--c)"
    return f"color-mix(in srgb,var(--c) {100 * share:g}%,{ground})"


def _num(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


class _Brush:
    """Paints on an image of a higher resolution than the result. Smooth words are painted last."""

    def __init__(self, image: Image, scale: float) -> None:
        from PIL import ImageDraw

        self._image, self._scale, self._by = image, scale, scale * _OVERSAMPLING
        self._pen = ImageDraw.Draw(image, "RGBA")
        self._words: list[Word] = []

    def box(self, x: float, y: float, right: float, bottom: float, mark: Mark) -> None:
        fill, edge, width = self._look(mark)
        around = [v * self._by for v in (x, y, right, bottom)]
        dashed = bool(STYLES[mark.style].dash)
        self._pen.rounded_rectangle(
            around, 3 * self._by, fill, None if dashed else edge, max(1, round(width))
        )
        corners = [(x, y), (right, y), (right, bottom), (x, bottom), (x, y)]
        for start, end in zip(corners, corners[1:], strict=False) if dashed else ():
            self.line(start, end, mark)

    def line(self, start: tuple[float, float], end: tuple[float, float], mark: Mark) -> None:
        _, edge, width = self._look(mark)
        for a, b in _dash_pieces(start, end, STYLES[mark.style].dash):
            points = [(p[0] * self._by, p[1] * self._by) for p in (a, b)]
            self._pen.line(points, edge, max(1, round(width)))

    def head(self, start: tuple[float, float], end: tuple[float, float], mark: Mark) -> None:
        long = math.dist(start, end) or 1.0
        dx, dy = (_ARROW_HEAD * (e - s) / long for s, e in zip(start, end, strict=True))
        sides = [(end[0] - dx - q * dy, end[1] - dy + q * dx) for q in (0.42, -0.42)]
        points = [(x * self._by, y * self._by) for x, y in (end, *sides)]
        self._pen.polygon(points, self._look(mark)[1])

    def area(self, points: Sequence[tuple[float, float]], mark: Mark) -> None:
        fill, edge, width = self._look(mark)
        corners = [(x * self._by, y * self._by) for x, y in points]
        self._pen.polygon(corners, fill, edge, max(1, round(width)))

    def write(self, word: Word) -> None:
        self._words.append(word)

    def done(self) -> Image:
        from PIL import ImageDraw

        image = self._image.reduce(_OVERSAMPLING)
        pen = ImageDraw.Draw(image)
        anchors = {"start": "ls", "middle": "ms", "end": "rs"}
        for word in self._words:
            x, y = word.points[0]
            font = _font(word.mono, word.heavy, round(word.size * self._scale, 1))
            place, color = (x * self._scale, y * self._scale), self._look(word)[0]
            # outline the word with the background's color, so that it is readable on top of a line
            pen.text(
                place,
                word.text,
                color,
                font,
                anchors[word.anchor],
                stroke_width=round(1.5 * self._scale),
                stroke_fill=_BACKGROUND,
            )
        return image

    def _look(self, mark: Mark) -> tuple[Any, Any, float]:
        style, color = STYLES[mark.style], mark.look.color if mark.look else INK
        fill: Any = _blend(color, style.fill) if style.fill else None
        if style.clear:
            fill = (*_blend(color, 1.0), round(255 * style.fill))
        edge = _blend(color, style.edge) if style.edge else None
        return fill, edge, style.width * self._by


def _blend(color: str, share: float) -> tuple[int, ...]:
    parts = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return tuple(
        round(share * c + (1 - share) * g) for c, g in zip(parts, _BACKGROUND, strict=True)
    )


def _dash_pieces(
    start: tuple[float, float], end: tuple[float, float], dash: tuple[float, ...]
) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    long = math.dist(start, end)
    if not dash or not long:
        return [(start, end)]
    along = [(end[i] - start[i]) / long for i in (0, 1)]

    def at(far: float) -> tuple[float, float]:
        far = min(far, long)
        return start[0] + along[0] * far, start[1] + along[1] * far

    count = min(2000, math.ceil(long / sum(dash)))
    return [(at(n * sum(dash)), at(n * sum(dash) + dash[0])) for n in range(count)]


@cache
def _font(mono: bool, heavy: bool, size: float) -> FreeTypeFont:
    from PIL import ImageFont

    # use matplotlib's fonts, which contain all arrows, without importing matplotlib
    spec = find_spec("matplotlib")
    assert spec is not None and spec.submodule_search_locations
    folder = Path(spec.submodule_search_locations[0], "mpl-data", "fonts", "ttf")
    name = "DejaVuSans" + ("Mono" if mono else "") + ("-Bold" if heavy else "")
    return ImageFont.truetype(str(folder / f"{name}.ttf"), size)
