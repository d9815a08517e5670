"""The one form of all explorers: controls, what they draw, and what it says in words.

    controls -> show(**values) -> Shown (words, pictures) -> words and images below the controls

While notebooks are run to be stored or compared, what the first setting draws is given: the ids of
widgets are new in every kernel.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from io import BytesIO
from typing import Any

from helpers.views.live import widget_view
from helpers.views.picture import Picture


@dataclass(frozen=True)
class Control:
    """One thing to change. options: from the words that are shown to the value; slider: in their order."""

    name: str
    words: str
    options: Mapping[str, Any]
    slider: bool = True


def steps(name: str, words: str, values: Any) -> Control:
    """Make a slider over numbers, shown with their thousands apart."""
    return Control(name, words, {f"{value:,}": value for value in values})


def choice(name: str, words: str, values: Any) -> Control:
    """Make a list to choose from; a mapping gives each value its words."""
    options = values if isinstance(values, Mapping) else {str(value): value for value in values}
    return Control(name, words, options, slider=False)


@dataclass(frozen=True)
class Shown:
    """What one setting gives: a sentence or two, and pictures from top to bottom."""

    words: str
    pictures: tuple[Picture, ...]


@dataclass(frozen=True, repr=False)
class Explorer:
    """Controls and what they show. Each display has controls of its own, which begin at `setting`.

    show: called with a value for each control, by name. link: called with the widgets by name, to tie some
    to others. Raises ValueError for a setting that the controls do not offer.
    """

    controls: tuple[Control, ...]
    show: Callable[..., Shown]
    setting: Mapping[str, Any]
    link: Callable[[Mapping[str, Any]], None] | None = field(default=None)

    def __post_init__(self) -> None:
        names = {control.name for control in self.controls}
        if names != set(self.setting):
            wrong = ", ".join(sorted(names ^ set(self.setting)))
            raise ValueError(f"the controls are {', '.join(sorted(names))}; what about {wrong}?")
        for control in self.controls:
            if self.setting[control.name] not in control.options.values():
                raise ValueError(
                    f"{control.name} offers {', '.join(control.options)}, not "
                    f"{self.setting[control.name]!r}."
                )

    def _now(self) -> Shown:
        return self.show(**self.setting)

    def __repr__(self) -> str:
        shown = self._now()
        return "\n".join([*(picture.text for picture in shown.pictures), shown.words])

    def _repr_png_(self) -> bytes:
        return _stacked([picture._repr_png_() for picture in self._now().pictures])

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {"text/plain": repr(self)} | widget_view(self.widget)

    def widget(self) -> Any:
        """Make the widget: the controls, below them the words, and the pictures."""
        import ipywidgets as widgets

        controls = {one.name: self._widget_of(one, widgets) for one in self.controls}
        words, images = widgets.HTML(), widgets.HTML()

        def show(change: object = None) -> None:
            shown = self.show(**{name: control.value for name, control in controls.items()})
            words.value = f"<b>{escape(shown.words)}</b>"
            images.value = "".join(map(_image, shown.pictures))

        if self.link is not None:
            self.link(controls)
        for control in controls.values():
            control.observe(show, "value")
        show()
        panel = widgets.Box(list(controls.values()), layout={"flex_flow": "row wrap"})
        return widgets.VBox([panel, words, images])

    def _widget_of(self, control: Control, widgets: Any) -> Any:
        from helpers.explorers.slider import Slider

        value = self.setting[control.name]
        if control.slider:
            return Slider(control.words, control.options, value)
        return widgets.Dropdown(
            options=list(control.options.items()),
            value=value,
            description=control.words,
            style={"description_width": "150px"},
            layout={"width": "385px"},
        )


def _image(picture: Picture) -> str:
    image = base64.b64encode(picture._repr_png_()).decode()
    return (
        f'<img src="data:image/png;base64,{image}" alt="{escape(picture.text)}"'
        ' style="max-width: 100%; display: block">'
    )


def _stacked(pictures: list[bytes]) -> bytes:
    """Put PNGs below each other."""
    if len(pictures) == 1:
        return pictures[0]
    from PIL import Image

    images = [Image.open(BytesIO(png)).convert("RGB") for png in pictures]
    whole = Image.new("RGB", (max(i.width for i in images), sum(i.height for i in images)), "white")
    y = 0
    for image in images:
        whole.paste(image, (0, y))
        y += image.height
    buffer = BytesIO()
    whole.quantize(128, dither=Image.Dither.NONE).save(buffer, format="png", optimize=True)
    return buffer.getvalue()
