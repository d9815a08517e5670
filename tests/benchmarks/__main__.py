"""Run every measurement, print the table, and write table and plot next to this file.

`python -m tests.benchmarks NAME ...` runs only the named sections, and writes nothing.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import torch

from helpers.ranks.launcher import disconnect
from helpers.views.curve import curves
from tests.benchmarks import (
    cells,
    checking,
    deadlocks,
    engine,
    grading,
    grading_peers,
    hosts,
    judging,
    launching,
    learners,
    monarch,
    watching,
)
from tests.benchmarks.timing import Figure, table

HERE = Path(__file__).parent


def machine() -> str:
    """Return a description of the machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), {memory:.0f} GiB, {platform.system()}, "
        f"Python {platform.python_version()}, torch {torch.__version__}; "
        "medians, in brackets the smallest and the largest"
    )


Section = Callable[[], Iterable[Figure]]

SECTIONS: dict[str, Section] = {
    "first_launch": engine.first_launch,
    "peers": launching.compare_with_peers,
    "cells": cells.live_cell,
    "monarch": monarch.compare_with_monarch,
    "hosts": hosts.on_two_hosts,
    "recording": engine.recording,
    "deadlocks": deadlocks.by_kind,
    "first_made": learners.first_made,
    "memory": engine.memory,
    "idle": learners.idle_memory,
    "thirty": learners.thirty_at_once,
    "checking": checking.notebook_checks,
    "advice": checking.advice,
    "grading": grading.sandboxed_grading,
    "grading_peers": grading_peers.compare_with_peers,
    "judging": judging.largest_values,
    "dragging": watching.dragging,
    "printing": watching.printing,
}
WORLDS = "worlds"
"""The section that also draws the picture."""


def main(names: list[str]) -> int:
    if unknown := sorted(set(names) - {WORLDS, *SECTIONS}):
        print(f"no such section: {', '.join(unknown)}; there are {', '.join([WORLDS, *SECTIONS])}")
        return 2
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
    torch.set_num_threads(1)
    print(f"load {os.getloadavg()[0]:.1f}; {machine()}\n")
    figures: list[Figure] = []
    points: dict[str, list[tuple[int, float]]] = {}
    if not names or WORLDS in names:
        rows, points = launching.by_world_size()
        print(table(rows), flush=True)
        figures += rows
    for name, section in SECTIONS.items():
        if not names or name in names:
            rows = list(section())
            print(table(rows), flush=True)
            figures += rows
    disconnect()
    if not names:
        _write(figures, points)
    return 0


def _write(figures: list[Figure], points: dict[str, list[tuple[int, float]]]) -> None:
    text = f"{machine()}\n\n{table(figures)}\n"
    (HERE / "RESULTS.md").write_text("# Measured by `make bench`\n\n" + text)
    picture = curves(
        points, x="ranks", y="call to result [s]", log="xy", title="A fresh world, one all_reduce"
    )
    picture.save(HERE / "launch.png")
    print(f"\nwritten: {HERE / 'RESULTS.md'} and launch.png")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
