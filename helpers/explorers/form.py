"""Define the common form of all explorers: the declarations of a module in this folder, and its page.

    TITLE, CONTROLS, START_SETTING, SENTENCE_TEMPLATES, plan()  ->  Explorer  ->  text, a page
    frame.js + frame.css + NAME.js         ->  computes the same plan in the page, and draws it

`plan(**setting)` returns the results for one setting: the numbers for `SENTENCE_TEMPLATES`, the drawn `rows`,
and `says`, the names of the `SENTENCE_TEMPLATES` that form the sentence (by default "says"). The page
contains the same function in JavaScript, because a saved notebook and an exported page have no kernel. A test
compares both functions. The texts are written once, in Python, and passed to the page as templates.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from html import escape
from math import floor, log10
from pathlib import Path
from types import ModuleType
from typing import Any

from helpers.views.live import KEYS_SCRIPT
from helpers.views.palette import COLLECTIVE, FAILURE, INK, RECV, SEND, SPAN, WAIT
from helpers.views.plain import plural, short_bytes

_HERE = Path(__file__).parent
_COLORS = {
    "send": SEND,
    "recv": RECV,
    "collective": COLLECTIVE,
    "wait": WAIT,
    "span": SPAN,
    "failure": FAILURE,
}
_PLACEHOLDER_PATTERN = re.compile(r"\{(\w+)(?::([^}]+))?\}")


@dataclass(frozen=True)
class Control:
    """One setting of an explorer. options: {displayed words: value}, in the slider's order."""

    name: str
    words: str
    options: Mapping[str, Any]
    slider: bool = True


def steps(name: str, words: str, values: Any) -> Control:
    """Return a slider over numbers, shown with thousands separators."""
    return Control(name, words, {f"{value:,}": value for value in values})


def choice(name: str, words: str, values: Any) -> Control:
    """Return a choice between buttons. If `values` is a mapping, its keys are the displayed words."""
    options = values if isinstance(values, Mapping) else {str(value): value for value in values}
    return Control(name, words, options, slider=False)


@dataclass(frozen=True, repr=False)
class Explorer:
    """An explorer that begins at `setting`. Raises ValueError for values that its controls do not offer."""

    module: ModuleType
    setting: Mapping[str, Any]

    def __post_init__(self) -> None:
        names = {control.name for control in self.module.CONTROLS}
        if names != set(self.setting):
            wrong = ", ".join(sorted(names ^ set(self.setting)))
            raise ValueError(
                f"unknown control: {wrong}. The controls are {', '.join(sorted(names))}."
            )
        for control in self.module.CONTROLS:
            if self.setting[control.name] not in control.options.values():
                raise ValueError(
                    f"{control.name} offers {', '.join(control.options)}, not "
                    f"{self.setting[control.name]!r}."
                )

    def __repr__(self) -> str:
        return text_of(self.module, self.setting)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._page()}

    def to_json(self) -> dict[str, Any]:
        """Return the data for the page, as JSON types."""
        module = self.module
        looks = {name: {"color": look.color, "tint": look.tint} for name, look in _COLORS.items()}
        return {
            "title": module.TITLE,
            "note": getattr(module, "NOTE", ""),
            "controls": [
                asdict(control) | {"options": list(control.options.items())}
                for control in module.CONTROLS
            ],
            "start": dict(self.setting),
            "words": module.SENTENCE_TEMPLATES,
            "colors": looks | {"ink": INK},
            "given": module.page_data() if hasattr(module, "page_data") else None,
        }

    def _page(self) -> str:
        """Return HTML that is the same in each run, so that it can be stored and compared.

        If scripts are removed (on GitHub, or in an untrusted notebook), the text remains.
        """
        # Escape "<", so that the data cannot end the script element. The scripts themselves do not contain
        # "</script".
        data = json.dumps(self.to_json(), separators=(",", ":"), ensure_ascii=False)
        data = data.replace("<", "\\u003c")
        script = "\n".join([javascript_of(self.module), f"const page = {data};", ""])
        name = f"rr-{hashlib.sha256(script.encode()).hexdigest()[:12]}"
        script += (
            f"for (const place of document.querySelectorAll('.{name}')) explorer(place, page);"
        )
        return (
            f'<div class="rr-explorer {name}"><strong>{escape(self.module.TITLE)}</strong>'
            f"<pre>{escape(repr(self))}</pre></div>"
            f"<style>{(_HERE / 'frame.css').read_text(encoding='utf-8')}</style>"
            f'<script type="module">{script}</script>'
        )


def javascript_of(module: ModuleType) -> str:
    """Return the JavaScript of one explorer: first the part shared by all explorers, then its script."""
    own = _HERE / f"{module.__name__.rpartition('.')[2]}.js"
    parts = (KEYS_SCRIPT, _HERE / "frame.js", own)
    return "\n".join(path.read_text(encoding="utf-8") for path in parts)


def text_of(module: ModuleType, setting: Mapping[str, Any]) -> str:
    """Return the results of one setting as text: a line for each row, then the sentence."""
    values = dict(setting) | module.plan(**setting)
    lines = [fill(module.SENTENCE_TEMPLATES["row"], row) for row in values["rows"]]
    says = [fill(module.SENTENCE_TEMPLATES[part], values) for part in values.get("says", ["says"])]
    return "\n".join([*lines, " ".join(says)])


def fill(template: str, values: Mapping[str, Any]) -> str:
    """Fill values into a template, as frame.js does: `{idle:0%}`, `{size:bytes}`, `{ranks:rank}`."""
    return _PLACEHOLDER_PATTERN.sub(
        lambda place: format_value(values[place[1]], place[2]), template
    )


def format_value(value: Any, spec: str | None) -> str:
    """Format one value. spec: None, "bytes", "seconds", decimals such as "1" and "0%", or a noun to count."""
    if spec is None:
        return value if isinstance(value, str) else f"{value:,}"
    if spec == "bytes":
        return short_bytes(value)
    if spec == "seconds":
        return _seconds(value)
    if spec[0].isdigit():
        return f"{value:,.{spec}}" if spec.endswith("%") else f"{value:,.{spec}f}"
    return plural(value, spec)


def _seconds(value: float) -> str:
    """Format a duration with three digits: `1,234 s`, `6.15 s`, `43.6 ms`, `2.70 µs`."""
    factor, unit = (1.0, "s") if value >= 1 or not value else (1e3, "ms")
    if unit == "ms" and value * factor < 1:
        factor, unit = 1e6, "µs"
    scaled = value * factor
    digits = max(0, 2 - floor(log10(scaled))) if scaled else 0
    return f"{scaled:,.{digits}f} {unit}"
