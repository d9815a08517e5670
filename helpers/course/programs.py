"""Put the environment's programs first on a Jupyter server's PATH, as if the environment were activated.

As a result, `!torchrun`, `!python` and `!pip install` in a cell, and the same commands in JupyterLab's
terminal, run the course's programs instead of the system's. The server extensions `look` and `hub` call this.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Any


def put_programs_first(server: Any) -> None:
    """Set the PATH of a Jupyter server, which its kernels inherit, and of its terminals.

    Must be called before the extension for terminals reads its settings.
    """
    own = str(Path(sys.executable).parent)
    rest = [p for p in os.environ.get("PATH", os.defpath).split(os.pathsep) if p != own]
    os.environ["PATH"] = os.pathsep.join([own, *rest])
    if os.name != "nt" and "shell_command" not in server.terminado_settings:
        # A server started outside a terminal opens login shells, which set a different PATH by reading
        # /etc/profile. So let a login shell start the interactive shell.
        shell = os.environ.get("SHELL") or "/bin/sh"
        start = f'PATH={shlex.quote(own)}:"$PATH"; export PATH; exec {shlex.quote(shell)}'
        command = ["/bin/sh", "-l", "-c", start]
        server.terminado_settings = {**server.terminado_settings, "shell_command": command}
