"""Exercises of notebook 10: DataParallel against DDP, and how well either scales."""

from __future__ import annotations

from helpers.exercises.amdahl_cases import amdahl_cases, look_at_amdahl
from helpers.exercises.model import Exercise, Kind
from helpers.exercises.scaling_cases import (
    gil_cases,
    look_at_scaling,
    strong_cases,
    weak_cases,
)
from helpers.exercises.thread_cases import look_at_replicas, thread_cases

NOTEBOOK = "10_dataparallel_vs_ddp"
_SCRIPTED = "helpers.exercises.scripted_scaling"

EXERCISES = (
    Exercise(
        "scatter_replicate_gather",
        "10.1",
        "DataParallel by hand",
        NOTEBOOK,
        Kind.MODULE,
        thread_cases,
        (
            "Four lines, one for each step. Which of them must the gradient be able to walk back "
            "through?",
            "For each chunk a `deepcopy(module)` and a dict of `p.clone()` by name. "
            "`functional_call(replica, parameters, (chunk,))` runs in a thread; start all threads "
            "before you wait for the first.",
            "chunks = x.chunk(workers); for each of them (deepcopy(module), {name: p.clone() for "
            "name, p in module.named_parameters()}); with ThreadPoolExecutor(len(chunks)) as pool: "
            "outputs = pool.map(run, replicas, chunks); return torch.cat(list(outputs)).",
        ),
        minutes=12,
        difficulty=3,
        programme="helpers.exercises.thread_programmes:on_threads",
        look=look_at_replicas,
    ),
    Exercise(
        "measure_gil",
        "10.2",
        "The price of the GIL",
        NOTEBOOK,
        Kind.MEASUREMENT,
        gil_cases,
        (
            "Which laps tell the truth about the work, and which about something else?",
            "A helper `time(n)`: one lap thrown away, then the median of about twenty. Then solve "
            "T(n) = T(1) (1 - h + h n) for h.",
            "longer = time(threads) / time(1); return threads / longer, (longer - 1) / (threads - 1)",
        ),
        minutes=8,
        difficulty=2,
        programme=f"{_SCRIPTED}:with_scripted_threads",
    ),
    Exercise(
        "strong_scaling",
        "10.3",
        "Strong scaling",
        NOTEBOOK,
        Kind.MEASUREMENT,
        strong_cases,
        (
            "How many samples has each of p ranks, if there are `samples` in all?",
            "For each p in worlds: one lap of measure(p, samples // p) thrown away, then about "
            "twenty. `statistics.quantiles(laps, n=4)` gives first quartile, median, third quartile.",
            "first, middle, third = quantiles(laps, n=4); (seconds, spread) = (middle, third - first); "
            "when all are there, efficiency = seconds of 1 rank / (p * seconds of p ranks).",
        ),
        minutes=10,
        difficulty=2,
        programme=f"{_SCRIPTED}:with_scripted_steps",
        look=look_at_scaling,
    ),
    Exercise(
        "weak_scaling",
        "10.4",
        "Weak scaling",
        NOTEBOOK,
        Kind.MEASUREMENT,
        weak_cases,
        (
            "Twice as many ranks do twice as much work. Which time would be ideal?",
            "As in strong scaling, but each rank has `samples`, whatever p is; a lap that takes as "
            "long as that of one rank has efficiency 1.",
            "As 10.3 with measure(p, samples) and efficiency = seconds of 1 rank / seconds of p ranks.",
        ),
        minutes=5,
        difficulty=1,
        programme=f"{_SCRIPTED}:with_scripted_steps",
        look=look_at_scaling,
    ),
    Exercise(
        "fit_amdahl",
        "10.5",
        "Fit Amdahl's law",
        NOTEBOOK,
        Kind.LOCAL,
        amdahl_cases,
        (
            "Over which quantity, instead of p, is T(p) = a + b / p a straight line?",
            "Fit a line through the points (1 / p, T(p)), with `numpy.polyfit` or "
            "`statistics.linear_regression`. Its height at 0 is what no rank makes shorter.",
            "b, a = linear_regression([1 / p for p in times], list(times.values())); s = a / (a + b); "
            "return s, 1 / (s + (1 - s) / ranks)",
        ),
        minutes=8,
        difficulty=2,
        look=look_at_amdahl,
    ),
)
