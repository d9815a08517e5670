"""Run a real JupyterLab for browser tests on a free port, and end it with all processes that it started."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from helpers.course.workspace import LOOK, find_workspace
from helpers.jobs.ports import free_port

START_S = 60.0

SETTINGS = {
    # render all cells, not only those that are scrolled into view
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}


@dataclass(frozen=True)
class Lab:
    """The address of a running JupyterLab."""

    port: int
    token: str

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/{path}?token={self.token}"


@contextmanager
def running_lab(
    work: Path, home: Path, app: str = "jupyterlab", options: Sequence[str] = LOOK
) -> Iterator[Lab]:
    """Serve the folder `work` without this machine's settings; keep the server's own settings in `home`.

    app: "jupyterlab", or "notebook" for Jupyter Notebook 7. options: the options of its command line, as
    `course lab` passes them.
    """
    lab = Lab(free_port(), secrets.token_hex(16))
    words = [sys.executable, "-m", app, "--no-browser", "--allow-root", *options]
    words += ["--ServerApp.ip=127.0.0.1", f"--ServerApp.port={lab.port}"]
    words += ["--ServerApp.port_retries=0", f"--IdentityProvider.token={lab.token}"]
    words += [f"--ServerApp.root_dir={work}"]
    log = (home / "lab.log").open("w+b")
    process = subprocess.Popen(
        words, cwd=work, env=_environment(work, home), stdout=log, stderr=log, close_fds=True
    )
    try:
        _wait_until_it_answers(lab, process, home / "lab.log")
        yield lab
    finally:
        process.send_signal(signal.SIGTERM)  # the server ends its kernels, and then itself
        try:
            process.wait(20.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5.0)
        log.close()


def _environment(work: Path, home: Path) -> dict[str, str]:
    for name, setting in SETTINGS.items():
        path = home / "config" / "lab" / "user-settings" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(setting))
    root = str(find_workspace().root)
    env = os.environ | {
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "IPYTHONDIR": str(home / "ipython"),
        "REAL_RANKS_PROGRESS": str(work / ".progress.json"),
        "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")])),
    }
    for name in ("REAL_RANKS_LIVE", "MPLBACKEND"):  # unset, as for a learner
        env.pop(name, None)
    return env


def _wait_until_it_answers(lab: Lab, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(lab.url("api/status"), timeout=5.0):
                return
        except OSError:
            assert process.poll() is None, log.read_text()[-4000:]
            time.sleep(0.1)
    raise AssertionError(f"no answer after {START_S:g} s: {log.read_text()[-4000:]}")
