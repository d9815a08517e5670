"""10.3 Strong scaling (12 min, ●●○○○)

- How many samples does each of p ranks have, if there are `samples` in all?
- For each p in worlds, discard one timing of measure(p, samples // p), then take about twenty more.
  `statistics.quantiles(timings, n=4)` returns the first quartile, the median and the third quartile.
- first, middle, third = quantiles(timings, n=4); (seconds, spread) = (middle, third - first); when all are
  measured, efficiency = seconds of 1 rank / (p * seconds of p ranks).
"""

from helpers.checks.author import *
from helpers.exercises.nb10_dataparallel_vs_ddp.in_ranks import run_with_scripted_steps
from helpers.exercises.nb10_dataparallel_vs_ddp.shared import draw_scaling_case


def case(draw: Draw) -> Case:
    return draw_scaling_case(draw, strong=True)


EXERCISE = Exercise(case, kind=Kind.MEASUREMENT, driver=run_with_scripted_steps, sizes=(1,))
