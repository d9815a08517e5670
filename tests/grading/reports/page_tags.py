"""The tags and attributes of a page, as found by a browser's parser."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import NamedTuple


class Tag(NamedTuple):
    name: str
    attributes: tuple[tuple[str, str], ...]


class Page(HTMLParser):
    """A parsed page, with its start tags in order and the text between them."""

    def __init__(self, page: bytes) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[Tag] = []
        self.texts: list[str] = []
        self.others: list[str] = []
        self.feed(page.decode("utf-8"))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(Tag(tag, tuple((name, value or "") for name, value in attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        self.others.append(data)

    def handle_pi(self, data: str) -> None:
        self.others.append(data)

    def unknown_decl(self, data: str) -> None:
        self.others.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def shape(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return each tag with the names of its attributes."""
        return [(tag.name, tuple(name for name, _ in tag.attributes)) for tag in self.tags]

    def values(self, attribute: str) -> list[str]:
        return [value for tag in self.tags for name, value in tag.attributes if name == attribute]
