"""Optimizer settings and advice shared by exercises of notebook 08."""

from __future__ import annotations

from helpers.checks.author import *
from helpers.exercises.shared.in_ranks.classifier import Rule

STEPS_ADVICE = (
    "You change the weights. Store only the mean in `p.grad`, because the caller runs the optimizer's "
    "step."
)
MICROBATCH_ADVICE = (
    "Run forward and backward for one microbatch before starting the next, because backward frees the "
    "activations."
)
ACCUMULATION_ADVICE = {
    "weights": STEPS_ADVICE,
    "samples": MICROBATCH_ADVICE,
    "held": MICROBATCH_ADVICE,
    "mode": "Leave the model in training mode, because in eval mode, dropout is off and BatchNorm's "
    "statistics aren't updated.",
}
"""Advice for each problem reported by `run_accumulation`."""
NO_GRADIENT_ADVICE = CrashAdvice(
    "'NoneType' object has no attribute '(zero_|fill_|data|detach_|mul_|div_)'",
    "`p.grad` is None until backward has set it. `zero_grad()` clears gradients that exist and skips None.",
)


def draw_rule(draw: Draw) -> Rule:
    """Draw the settings of an optimizer."""
    return draw.of(0.5, 0.25), draw.of(0.0, 0.9, 0.5), draw.of(0.0, 0.0, 0.01)
