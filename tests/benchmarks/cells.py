"""Measure a cell on live ranks: `%%ranks` and ipyparallel's engines, in one run."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from helpers.ranks import magics
from tests.benchmarks.timing import Figure, median, spread

CELL = "x = torch.ones(4)\ndist.all_reduce(x)\nx"
RANKS, CELLS = 4, 60


def live_cell() -> list[Figure]:
    """Time one cell that reduces a small tensor, on existing worlds."""
    ours, engines = live_cells(), ipyparallel_cells()
    compared = f"ipyparallel {spread(engines)}"
    ratio = f"{median(engines) / median(ours):.1f}x faster"
    return [Figure(f"live %%ranks cell, {RANKS} ranks", spread(ours), compared, ratio, "≤ 5 ms")]


def live_cells(where: str = "", names: Mapping[str, Any] | None = None) -> list[float]:
    """Return the seconds of each cell except the first ten, on one live world.

    where: additional options of the magic. names: the notebook's names.
    """
    shell = InteractiveShell.instance()
    shell.user_ns.update(names or {})
    magics.register(shell)
    times = []
    for _ in range(CELLS):
        start = perf_counter()
        shell.run_cell_magic("ranks", f"{RANKS} {where}", CELL)
        times.append(perf_counter() - start)
    magics.end_live_world("the measurement is over")
    return times[10:]


def ipyparallel_cells() -> list[float]:
    """Return the seconds of the same cell on ipyparallel's engines."""
    import ipyparallel

    from helpers.jobs.ports import free_port

    times = []
    with ipyparallel.Cluster(n=RANKS, log_level=40) as engines:
        everywhere = engines[:]
        everywhere.block = True
        everywhere.scatter("ranks", list(range(RANKS)), flatten=True)
        everywhere.push({"port": free_port(), "size": RANKS})
        everywhere.execute(
            "import torch, torch.distributed as dist\n"
            "dist.init_process_group('gloo', init_method=f'tcp://127.0.0.1:{port}',"
            " rank=ranks, world_size=size)"
        )
        for _ in range(CELLS):
            start = perf_counter()
            everywhere.execute(CELL)
            everywhere.pull("x")
            times.append(perf_counter() - start)
    return times[10:]
