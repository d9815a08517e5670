"""Compare two hosts with one for a launch and a live cell, and with other tools that start ranks on machines.

Both hosts are this machine, as made by `hosts.local(2)`, so the figures show the cost of Dask's connections
without a network. srun starts the same sum as a script, on a Slurm with two nodes if it can run here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

from helpers import hosts
from helpers.jobs.ports import free_port
from helpers.ranks.launcher import connect, launch
from tests.benchmarks.cells import RANKS, ipyparallel_cells, live_cells
from tests.benchmarks.monarch import monarch_calls, start_monarch
from tests.benchmarks.programs import one_all_reduce
from tests.benchmarks.timing import Figure, interleaved, median, spread
from tests.jobs import slurm

LAUNCHES, STARTS = 20, 5
SCRIPT = """\
import os
os.environ |= {"RANK": os.environ["SLURM_PROCID"], "WORLD_SIZE": os.environ["SLURM_NTASKS"]}
from tests.benchmarks.programs import join_from_environment_and_reduce
join_from_environment_and_reduce()
"""


def on_two_hosts() -> list[Figure]:
    """Measure a world of 4 on one host and on two, its live cell, and the peers, in one run."""
    connect().preload()
    machines = hosts.local(2).open()
    with closing(machines):

        def two() -> object:
            with machines:
                return launch(one_all_reduce, RANKS)

        def one() -> object:
            return launch(one_all_reduce, RANKS)

        times = interleaved({"one": one, "two": two}, LAUNCHES)
        near, far = live_cells(), live_cells("--where machines", {"machines": machines})
        started = _compare_with_peers(times["two"], two)
    alone, both = times["one"], times["two"]
    figures = [
        Figure(
            f"launch, {RANKS} ranks on 2 hosts",
            spread(both),
            f"on one host {spread(alone)}",
            f"{median(both) / median(alone):.2f}x",
            "≤ 2x",
        ),
        Figure(
            f"live %%ranks cell, {RANKS} ranks on 2 hosts",
            spread(far),
            f"on one host {spread(near)}",
            f"{median(far) / median(near):.2f}x",
            "≤ 15 ms",
        ),
        *started,
    ]
    peers: list[tuple[str, str, Callable[[], list[float]]]] = [
        ("ipyparallel", "ipyparallel", ipyparallel_cells),
        ("monarch", "Monarch, a call of an endpoint", monarch_calls),
    ]
    for package, name, measure in peers:
        if find_spec(package):
            theirs = measure()
            ratio = f"{median(theirs) / median(far):.1f}x faster"
            what = f"live %%ranks cell, {RANKS} ranks on 2 hosts"
            figures.append(Figure(what, spread(far), f"{name} {spread(theirs)}", ratio))
    return figures


def _compare_with_peers(ours: list[float], two: Callable[[], object]) -> list[Figure]:
    """Measure tools that start new processes: `srun` with a script, and Monarch."""
    figures = []
    what = f"launch, {RANKS} ranks on 2 hosts"
    if find_spec("monarch"):
        theirs = interleaved({"two": two, "monarch": start_monarch}, STARTS)["monarch"]
        ratio = f"{median(theirs) / median(ours):.1f}x faster"
        name = f"Monarch, {RANKS} processes to the first sum"
        figures.append(Figure(what, spread(ours), f"{name} {spread(theirs)}", ratio))
    if slurm.why_not():
        return [*figures, Figure("srun of a script", slurm.why_not())]
    with tempfile.TemporaryDirectory() as folder, slurm.slurm(Path(folder)) as env:
        theirs = interleaved({"srun": lambda: _srun(env)}, STARTS)["srun"]
    ratio = f"{median(theirs) / median(ours):.1f}x faster"
    figures.append(Figure(what, spread(ours), f"srun of a script {spread(theirs)}", ratio))
    return figures


def _srun(env: dict[str, str]) -> None:
    at = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "OMP_NUM_THREADS": "1"}
    words = ["srun", "--nodes=2", f"--ntasks-per-node={RANKS // 2}", sys.executable, "-c", SCRIPT]
    done = subprocess.run(
        words, env={**env, **at, "PYTHONPATH": os.getcwd()}, capture_output=True, timeout=120
    )
    assert done.returncode == 0, done.stderr.decode()
