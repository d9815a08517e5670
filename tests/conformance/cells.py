"""Run a program in the three ways of the engine, from cells of one real Jupyter kernel."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from helpers.ranks.budget import MAX_BUDGET_FACTOR
from tests.conformance.entry import Entry
from tests.conformance.in_kernel import SAID
from tests.conformance.outcome import Outcome, from_json
from tests.kernel.session import Cell, Kernel

BUDGET_S, HANG_S, SLACK_S = 60.0, 8.0, 30.0
"""Time limits. On a busy machine a cell may take MAX_BUDGET_FACTOR times as long, like a launch."""

_FIRST = """\
from helpers import *
import os
from tests.conformance import in_kernel as _conformance
_kept = _conformance.names()
_conformance.keep_settings()
"""
_CALL = "_conformance.tell(launch(main, {n}, init={init}, timeout={timeout}, on_failure='return'{more}))"


class Cells:
    """One kernel that runs program after program, like a learner's kernel."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="cf-"))
        self.kernel = self._new_kernel()
        self._stays_set = False

    def _new_kernel(self) -> Kernel:
        kernel = Kernel()
        kernel.value(_FIRST)
        kernel.value("launch(lambda rank, n: rank, 2)")
        return kernel

    def close(self) -> None:
        """End the kernel. Fail if it leaves a process or a file behind."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.kernel.close()

    def run(self, entry: Entry, way: str) -> Outcome:
        """Run a program in one way, in a new folder and without the names of the previous program."""
        work = Path(tempfile.mkdtemp(dir=self.folder))
        if entry.sets or self._stays_set:
            self.kernel.close()
            self.kernel = self._new_kernel()
        self._stays_set = entry.sets
        self.kernel.value(f"os.chdir({str(work)!r})")
        try:
            return self._ranks(entry) if way == "ranks" else self._launch(entry, way)
        except AssertionError as error:  # a cell that does not end
            self._renew()
            return Outcome("kernel stuck", message=str(error).split("\n", 1)[0])
        finally:
            self.kernel.value(f"os.chdir({str(self.kernel.temp.parent)!r})")
            self.kernel.value("_conformance.forget(_kept)\nfrom helpers import *")
            shutil.rmtree(work, ignore_errors=True)

    def settle(self) -> None:
        """End the ranks that stay alive between cells."""
        self.kernel.value(
            "from helpers.ranks.magics import end_live_world; end_live_world('an end')"
        )

    def _launch(self, entry: Entry, way: str) -> Outcome:
        pasted = self.kernel.run(entry.source)
        if pasted.status != "ok":
            return _failed(pasted)
        timeout = _budget_s(entry)
        more = ", trace=False" if way == "untraced" else ""
        call = _CALL.format(n=entry.world_size, init=entry.init, timeout=timeout, more=more)
        cell = self.kernel.run(call, timeout * MAX_BUDGET_FACTOR + SLACK_S)
        return _read_outcome(cell) if cell.status == "ok" else _failed(cell)

    def _ranks(self, entry: Entry) -> Outcome:
        timeout = _budget_s(entry)
        lines = [f"%%ranks {entry.world_size} --fresh --timeout {timeout:g}", entry.source]
        if not entry.init:  # live ranks have already joined the group
            lines.append("dist.destroy_process_group()")
        lines.append("main(rank, world_size)")
        cell = self.kernel.run("\n".join(lines), timeout * MAX_BUDGET_FACTOR + SLACK_S)
        return _read_outcome(self.kernel.run(f"_conformance.tell_cell({cell.status == 'ok'})"))

    def _renew(self) -> None:
        """Replace an unresponsive kernel with a new one."""
        self.kernel.kill()
        for process in self.kernel.processes():
            process.kill()
        self.kernel = self._new_kernel()


def _budget_s(entry: Entry) -> float:
    return HANG_S if entry.hangs else BUDGET_S


def _read_outcome(cell: Cell) -> Outcome:
    """Read the line printed by `in_kernel`."""
    for line in cell.text.split("\n"):
        if line.startswith(SAID):
            return from_json(json.loads(line.removeprefix(SAID)))
    raise AssertionError(f"the kernel said nothing: {cell.text[-300:]} {cell.message[-300:]}")


def _failed(cell: Cell) -> Outcome:
    return Outcome(cell.error, message=cell.message.strip().split("\n")[-1])
