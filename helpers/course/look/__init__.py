"""Extend JupyterLab's server for the course. `course lab` and `hub` enable this extension.

Notebooks run in the course's kernel, are saved without widgets, and are automatically saved when a check
passes (extensions). Pictures adapt to the theme (custom.css), and an open home page shows the current
progress (home.js). home.js reads the map's address from the page's settings, so that it never asks a server
without this extension.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import url_path_join
from tornado import web

from helpers.course.export import store_without_widgets
from helpers.course.home import home
from helpers.course.paths import path_names
from helpers.course.programs import put_programs_first
from helpers.course.progress import record_path

KERNELS = Path(__file__).parents[1] / "kernels"
"""Kernelspecs of the course. They have the same names as Jupyter's kernelspecs, but are found first."""


class MapHandler(APIHandler):
    """Responds with the course's map as HTML, based on the progress of the person who runs this server.

    A POST first records the path chosen by this person.
    """

    auth_resource = "contents"
    # Requesting a map does not count as activity, so a hub may stop a server without other requests.
    _track_activity = False

    @web.authenticated
    @authorized
    async def get(self) -> None:
        await self._send_map()

    @web.authenticated
    @authorized
    async def post(self) -> None:
        name = self.request.body.decode(errors="replace")
        if name not in path_names():
            raise web.HTTPError(400, f"there is no path {name!r}")
        if note := await asyncio.to_thread(record_path, name):
            raise web.HTTPError(500, note)
        await self._send_map()

    async def _send_map(self) -> None:
        # Read in a thread, because reading has to wait while a kernel holds the lock of the progress file.
        shown = await asyncio.to_thread(home)
        self.finish(shown.map_html(), set_content_type="text/html; charset=UTF-8")


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "helpers.course.look"}]


def _link_jupyter_server_extension(server: Any) -> None:
    put_programs_first(server)
    # Without this, each kernel warns in the terminal that its messages can be read on this machine.
    server.config.KernelManager.transport_encryption = "auto"


def _load_jupyter_server_extension(server: Any) -> None:
    enable_look(server)


def enable_look(server: Any) -> None:
    """Add the map, the style sheet and the course's kernel to a server."""
    settings = server.web_app.settings
    # Jupyter closes a kernel's connection after three intervals without a pong. Tornado requires a timeout of
    # at most one interval, which would close good connections whenever a pong is slightly late.
    logging.getLogger("tornado.general").addFilter(_is_not_about_pings)
    server.contents_manager.register_pre_save_hook(store_without_widgets)
    # Folders are searched in order, so a user's own custom.css takes precedence.
    settings["static_custom_path"].append(str(Path(__file__).parent))
    address = url_path_join(settings["base_url"], "real-ranks", "map")
    server.web_app.add_handlers(".*$", [(address, MapHandler)])
    settings.setdefault("page_config_data", {})["realRanksMap"] = address
    specs = server.kernel_spec_manager
    specs.kernel_dirs = [str(KERNELS), *specs.kernel_dirs]


def _is_not_about_pings(record: logging.LogRecord) -> bool:
    return "websocket_ping_timeout" not in str(record.msg)
