"""Run every measurement, print the table, write it and the plot beside this file."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import torch

from helpers.ranks.launcher import disconnect
from helpers.views.curve import curves
from tests.benchmarks import cells, engine, grading, grading_peers, launching
from tests.benchmarks.timing import Figure, table

HERE = Path(__file__).parent


def machine() -> str:
    """Say what was measured on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), {memory:.0f} GiB, {platform.system()}, "
        f"Python {platform.python_version()}, torch {torch.__version__}; "
        "medians, in brackets the smallest and the largest"
    )


def main() -> int:
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
    torch.set_num_threads(1)
    figures: list[Figure] = []
    sections: list[Callable[[], Iterable[Figure]]] = [
        lambda: [engine.first_launch()],
        launching.beside_peers,
        cells.live_cell,
        engine.recording,
        lambda: [engine.diagnosis()],
        engine.memory,
        grading.in_the_sandbox,
        grading_peers.beside_peers,
    ]
    rows, points = launching.by_world_size()
    figures += rows
    print(table(rows), flush=True)
    for section in sections:
        more = list(section())
        print(table(more), flush=True)
        figures += more
    text = f"{machine()}\n\n{table(figures)}\n"
    (HERE / "RESULTS.md").write_text("# Measured by `make bench`\n\n" + text)
    picture = curves(
        points, x="ranks", y="call to result [s]", log="xy", title="A fresh world, one all_reduce"
    )
    picture.save(HERE / "launch.png")
    print(f"\nwritten: {HERE / 'RESULTS.md'} and launch.png")
    disconnect()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
