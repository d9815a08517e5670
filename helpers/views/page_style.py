"""The style of the course's pages, such as reports on grades and the room's board."""

from __future__ import annotations

from pathlib import Path

PAGE_STYLE = Path(__file__).with_name("page.css")
