"""10.4 Weak scaling (5 min, ●○○○○, further)

- Twice as many ranks do twice as much work. Which time would be ideal?
- Measure as in strong scaling, but each rank has `samples`, whatever p is. A step taking as long as on one
  rank has efficiency 1.
- Write it as in 10.3, but with measure(p, samples) and efficiency = seconds of 1 rank / seconds of p ranks.
"""

from helpers.checks.author import *
from helpers.exercises.nb10_dataparallel_vs_ddp.in_ranks import run_with_scripted_steps
from helpers.exercises.nb10_dataparallel_vs_ddp.shared import draw_scaling_case


def case(draw: Draw) -> Case:
    return draw_scaling_case(draw, strong=False)


EXERCISE = Exercise(case, kind=Kind.MEASUREMENT, driver=run_with_scripted_steps, sizes=(1,))
