"""Results display themselves for callers of the public functions, and are plain data for all others."""

from __future__ import annotations

import subprocess
import sys

PLAIN = """
from helpers.ranks.run import Run
from helpers.trace.events import Trace
run = Run(1, [None], ["hi"], Trace(1, ()))
assert repr(run).startswith("Run(world_size=1"), repr(run)
assert not hasattr(run, "_repr_html_")
"""
SHOWN = """
from helpers import launch
from helpers.check_result import CheckResult, Outcome
from helpers.jobs.run import MpiRun, TorchrunRun
assert repr(run) == "rank 0 | hi", repr(run)
results = [run, CheckResult("f", "Exercise 5.3", Outcome.PASSED)]
results += [MpiRun(("mpiexec", "job.py"), (), (), 0), TorchrunRun(())]
for result in results:
    assert result._repr_html_().startswith("<div"), result
print(results[1])
"""


def test_public_import_enables_html_results() -> None:
    done = subprocess.run([sys.executable, "-c", PLAIN + SHOWN], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "✓ Exercise 5.3: passed\n"
