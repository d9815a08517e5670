"""Set up the course on a hub as `course lab` does, whenever a person's server starts.

    JupyterHub --spawns, REAL_RANKS_HUB=1--> a person's server: this extension
                                                  `--> ~/real-ranks, home page, theme, kernel

`workspace.set_up_jupyter` writes a file (etc/jupyter/jupyter_server_config.d/real_ranks.json) that enables
this extension in every Jupyter server of the environment. The extension does nothing unless REAL_RANKS_HUB is
1. `course lab` does not need it, because it enables `look` directly.
"""

from __future__ import annotations

import os
from typing import Any

from helpers.course import look
from helpers.course.home import write_home
from helpers.course.programs import put_programs_first
from helpers.course.workspace import (
    PAGE_EXTENSIONS,
    WorkspaceError,
    copy_missing_notebooks,
    find_workspace,
)

HUB = "REAL_RANKS_HUB"


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "helpers.course.hub"}]


def _link_jupyter_server_extension(server: Any) -> None:
    """Set up a person's server before it reads its settings."""
    if not _on_hub():
        return
    # Files written by this person's server and kernels are private, including files in /tmp and /dev/shm.
    os.umask(0o077)
    put_programs_first(server)
    # A kernel's ports are open to all users of a machine, who could read the kernel's output. "required"
    # means that a connection without keys from the person's connection file fails.
    server.config.KernelManager.transport_encryption = "required"
    server.config.LabApp.custom_css = True
    server.config.LabServerApp.extra_labextensions_path = [str(PAGE_EXTENSIONS)]


def _load_jupyter_server_extension(server: Any) -> None:
    """Fill the person's folder and write its home page, then enable the same extension as `course lab`."""
    if not _on_hub():
        return
    try:
        workspace = find_workspace()
        new = copy_missing_notebooks(workspace)
        workspace.work.chmod(0o700)
        server.log.info("Real Ranks: %s, %d new", write_home(workspace.work), len(new))
    except (WorkspaceError, OSError) as error:
        # Continue, because the person can still do other work, and a server that fails to start could not
        # even report the error.
        server.log.error("Real Ranks could not fill this person's folder: %s", error)
    look.enable_look(server)


def _on_hub() -> bool:
    return os.environ.get(HUB) == "1"
