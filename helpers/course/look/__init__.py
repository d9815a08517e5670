"""Gives JupyterLab the course's styles: an extension of its server, which `course lab` switches on."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "helpers.course.look"}]


def _load_jupyter_server_extension(server: Any) -> None:
    # Searched in order: a custom.css of the user's own comes first.
    server.web_app.settings["static_custom_path"].append(str(Path(__file__).parent))
