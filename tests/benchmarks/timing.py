"""Medians, ratios, and the table that holds them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter


@dataclass(frozen=True)
class Figure:
    """One measured figure: its name, its value, the value for comparison, and the target."""

    what: str
    value: str
    compared: str = ""
    ratio: str = ""
    target: str = ""


def seconds_of(call: Callable[[], object]) -> float:
    """Time one call."""
    start = perf_counter()
    call()
    return perf_counter() - start


def interleaved(calls: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    """Time several calls in turn, so that other load of the machine affects all of them equally."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():  # warm up, unmeasured
        call()
    for _ in range(repeats):
        for name, call in calls.items():
            times[name].append(seconds_of(call))
    return times


def median(times: list[float]) -> float:
    return statistics.median(times)


def spread(times: list[float]) -> str:
    """Write the median with the smallest and the largest value: `25 ms (24 to 31)`."""
    low, mid, high = min(times), median(times), max(times)
    if mid >= 1:
        return f"{mid:.2f} s ({low:.2f} to {high:.2f})"
    return f"{1e3 * mid:.3g} ms ({1e3 * low:.3g} to {1e3 * high:.3g})"


def table(figures: list[Figure]) -> str:
    """Write figures as a Markdown table."""
    rows = ["| what | measured | compared | ratio | goal |", "|---|---|---|---|---|"]
    rows += [f"| {f.what} | {f.value} | {f.compared} | {f.ratio} | {f.target} |" for f in figures]
    return "\n".join(rows)
