"""Inside a rank: run a composed script on real MPI ranks and report what came of it.

The counterpart of `scripts.under_torchrun` for exercises whose script mpiexec starts. The worker
calls `MPI.Finalize()` once its report is written; an exception in one rank ends all (`python -m
mpi4py`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from helpers.checks.scripts import ROOT, report
from helpers.jobs.mpiexec import run_mpiexec


def under_mpiexec(script: Path, n: int, *, timeout_s: float = 8.0) -> dict[str, Any]:
    """Run a composed script on `n` MPI ranks and give its report."""
    run = run_mpiexec(script, n, module="mpi4py", env={"PYTHONPATH": ROOT}, timeout=timeout_s)
    late = run.failure is not None and str(run.failure).startswith("not done after")
    return report(script.parent, n, {"late": late, "exits": {}}, run.output)
