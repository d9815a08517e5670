"""A real Jupyter kernel for tests: run cells in it, press Stop, restart it, kill it, look for leftovers.

Every process started by a kernel inherits a mark in its environment, which identifies it even after its
parent has changed, and a private temp directory, which must be empty in the end.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import queue
import secrets
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

from helpers.course.workspace import find_workspace

MARK = "REAL_RANKS_TEST_MARK"
TORCHS_OWN = {f"torchinductor_{getpass.getuser()}"}
"""The cache of torch.compile: torch keeps one for each user in the temp directory."""

CELL_S = 60.0
STOP_S = 5.0
GONE_S = 10.0


@dataclass
class Cell:
    """The results of one cell. text: its displayed text, in order. number: the number in its margin."""

    number: int = 0
    status: str = ""
    text: str = ""
    error: str = ""
    message: str = ""
    updates: list[str] = field(default_factory=list)


class Kernel:
    """A kernel, its client, and the processes started by it.

    python: the interpreter that runs it. Use that of `forking_python` only in tests without process
    checks. spec: the folder of its kernelspec, by default ipykernel's.
    """

    def __init__(self, python: str = sys.executable, spec: Path | None = None, **env: str) -> None:
        self.mark = secrets.token_hex(16)
        # short: multiprocessing puts sockets below it, whose paths may have 107 characters
        self.temp = Path(tempfile.mkdtemp(prefix="rr-", dir="/tmp"))
        self.folder = Path(tempfile.mkdtemp(prefix="cells-"))  # where its cells write files
        specs = KernelSpecManager()
        if spec is not None:
            specs.kernel_dirs = [str(spec.parent), *specs.kernel_dirs]
        self._manager = KernelManager(kernel_name="python3", kernel_spec_manager=specs)
        self._manager.kernel_spec.argv[0] = python
        self._manager.start_kernel(env=self._environment(env), cwd=str(self.folder))
        self._client: BlockingKernelClient = self._manager.client()
        self._connect()

    def _environment(self, env: Mapping[str, str]) -> dict[str, str]:
        root = str(find_workspace().root)
        given = {
            MARK: self.mark,
            "TMPDIR": str(self.temp),
            "REAL_RANKS_LIVE": "0",
            "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")])),
        }
        return {**os.environ, **given, **env}

    def _connect(self) -> None:
        self._client.start_channels()
        self._client.wait_for_ready(timeout=CELL_S)

    @property
    def pid(self) -> int:
        pid = getattr(self._manager.provisioner, "pid", None)
        assert isinstance(pid, int), "the kernel has ended"
        return pid

    # --- cells ---------------------------------------------------------------------------------------

    def run(self, source: str, deadline_s: float = CELL_S) -> Cell:
        """Run a cell to its end."""
        return self.wait(self.begin(source), deadline_s)

    def value(self, source: str) -> str:
        """Run a cell that must succeed, and return its displayed text."""
        cell = self.run(source)
        assert cell.status == "ok", f"{cell.error}: {cell.message}"
        return cell.text

    def begin(self, source: str) -> str:
        """Start a cell without waiting for it. If it fails, the cells after it still run."""
        sent: str = self._client.execute(source, stop_on_error=False)
        return sent

    def wait(self, request: str, deadline_s: float = CELL_S) -> Cell:
        """Wait until a cell has ended, and return its results."""
        cell, deadline = Cell(), time.monotonic() + deadline_s
        while True:
            left = deadline - time.monotonic()
            assert left > 0, (
                f"the cell has not ended after {deadline_s:g} s; it showed: {cell.text}"
            )
            with contextlib.suppress(queue.Empty, ValueError):
                message = self._client.get_iopub_msg(timeout=min(left, 1.0))
                if message["parent_header"].get("msg_id") == request and _is_last(message, cell):
                    break
        while True:
            try:
                reply = self._client.get_shell_msg(timeout=CELL_S)
            except ValueError:  # a Stop has interrupted Jupyter's code while it sent a reply
                continue
            if reply["parent_header"].get("msg_id") == request:
                cell.status = reply["content"]["status"]
                cell.number = reply["content"]["execution_count"]
                return cell

    def interrupt(self) -> None:
        """Interrupt the kernel like JupyterLab's Stop button."""
        self._manager.interrupt_kernel()

    # --- restart and end -------------------------------------------------------------------------------

    def restart(self, *, now: bool) -> None:
        """Restart the kernel like JupyterLab's Restart button. `now`: without asking the kernel first."""
        self._client.stop_channels()
        self._manager.restart_kernel(now=now)
        self._client = self._manager.client()
        self._connect()

    def kill(self) -> None:
        """Kill the kernel process only, like the system if memory is short."""
        os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Shut down, and fail if a process or a file is left."""
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=not self._manager.is_alive())
        self._manager.cleanup_resources()
        try:
            wait_until(lambda: not self.processes(), GONE_S, self.processes)
            left = sorted({path.name for path in self.temp.iterdir()} - TORCHS_OWN)
            assert not left, f"left in the temp directory: {left}"
        finally:
            for process in self.processes():
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            for folder in (self.temp, self.folder):
                shutil.rmtree(folder, ignore_errors=True)

    # --- its processes -----------------------------------------------------------------------------------

    def processes(self) -> set[psutil.Process]:
        """Return every living process of this kernel, including the kernel itself."""
        return {process for process in psutil.process_iter() if self._is_ours(process)}

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            alive = process.status() != psutil.STATUS_ZOMBIE
            return bool(alive and process.environ().get(MARK) == self.mark)
        except (psutil.Error, OSError):
            return False

    def servers(self) -> set[psutil.Process]:
        """Return the rank server, if any."""
        return {p for p in self.processes() if _is_server(p) and _parent(p) == self.pid}

    def ranks(self) -> set[psutil.Process]:
        """Return the ranks and their child processes: all processes except the kernel and the rank server."""
        others = {self.pid} | {server.pid for server in self.servers()}
        return {process for process in self.processes() if process.pid not in others}

    def wait_for_ranks(self, count: int) -> None:
        wait_until(lambda: len(self.ranks()) >= count, CELL_S, self.ranks)


MakeKernel = Callable[..., Kernel]
"""Starts a separate kernel for a test, with these environment variables."""


def _is_last(message: dict[str, Any], cell: Cell) -> bool:
    """Add a message's text to the cell. Return whether the message is about the end of the cell."""
    kind, content = message["msg_type"], message["content"]
    if kind == "stream":
        cell.text += content["text"]
    elif kind in {"execute_result", "display_data"}:
        cell.text += content["data"].get("text/plain", "") + "\n"
    elif kind == "update_display_data":
        cell.updates.append(content["data"].get("text/html", ""))
    elif kind == "error":
        cell.error, cell.message = content["ename"], "\n".join(content["traceback"])
    return bool(kind == "status" and content["execution_state"] == "idle")


def _is_server(process: psutil.Process) -> bool:
    try:
        # a forked server has its kernel's command line, and a different name
        return process.name() == "rank server" or "helpers.ranks.server" in " ".join(
            process.cmdline()
        )
    except psutil.Error:
        return False


def _parent(process: psutil.Process) -> int:
    try:
        return int(
            process.ppid()
        )  # a forked rank has the server's command line, but not its parent
    except psutil.Error:
        return 0


def wait_until(
    reached: Callable[[], bool], deadline_s: float, show: Callable[[], object] = lambda: ""
) -> None:
    """Poll until `reached()` is true. Fail at the deadline, showing `show()`."""
    deadline = time.monotonic() + deadline_s
    while not reached():
        assert time.monotonic() < deadline, f"not so after {deadline_s:g} s: {show()}"
        time.sleep(0.02)
