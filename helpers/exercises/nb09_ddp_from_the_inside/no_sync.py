"""9.4 no_sync (6 min, ●●○○○)

- Forward reads the flag. Which value must the flag have again when the block ends, however it ends?
- Keep the old value, set the flag to False, yield, and restore the old value. If the block raises an
  exception, your `yield` raises it.
- old = ddp.require_backward_grad_sync; ddp.require_backward_grad_sync = False; try: yield; finally:
  ddp.require_backward_grad_sync = old
"""

from helpers.checks.author import *
from helpers.exercises.nb09_ddp_from_the_inside.in_ranks import run_accumulation
from helpers.exercises.nb09_ddp_from_the_inside.shared import DDP_COLLECTIVES
from helpers.exercises.shared.gradients import PARITY_MARGIN, draw_samples, draw_weights

ADVICE = {
    "off": "The flag is `require_backward_grad_sync`, and it must be False while the block runs.",
    "comes out": "Don't swallow the exception. Restore the flag in `finally:`, without using `except:` or "
    "a `return`.",
    "inner": "Set the flag to False for the block instead of flipping it.",
    "nested": "Restore the flag to what it was before the block, which may have been False.",
    "behind": "Restore the flag to what it was before the block.",
    "restored": "Put `try:` around the `yield`, and restore the flag in `finally:`.",
    "interrupted": "Restore the flag in `finally:`, because KeyboardInterrupt isn't a subclass of Exception.",
}


def case(draw: Draw) -> Case:
    n, k, size, steps = draw.ranks, draw.of(1, 2, 3, 4), draw.whole(1, 3), draw.of(1, 2)
    pixels, classes = draw.whole(1, 3), draw.whole(2, 3)
    weights = draw_weights(draw, pixels, classes)
    x, y = draw_samples(draw, steps * n * k * size, pixels, classes)
    parts = list(zip(x.split(size), y.split(size), strict=True))
    given = [[parts[(s * n + r) * k :][:k] for s in range(steps)] for r in range(n)]
    return Case(
        f"{steps} step{'s' * (steps > 1)} of {k} microbatch{'es' * (k > 1)}",
        [(weights, mine) for mine in given],
        right=Reference(None, ADVICE, PARITY_MARGIN),
        facts={"steps": steps},
    )


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(DDP_COLLECTIVES),
        Calls(
            "all_reduce", "steps", why="That's once in each step, in the backward after the block."
        ),
    ),
    failed=(
        CrashAdvice(
            "didn't yield",
            "Your function must `yield` exactly once, at the point where the block should run.",
        ),
    ),
    kind=Kind.MODULE,
    driver=run_accumulation,
    reported=("off", "comes out", "inner", "nested", "behind", "restored", "interrupted"),
    sizes=(1, 2, 3, 4),
)
