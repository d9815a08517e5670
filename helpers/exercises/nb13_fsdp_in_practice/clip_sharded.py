"""13.3 Clip by the norm of all (12 min, ●●●○○)

- You can't add up norms over the ranks. What can you add up instead, and how does it give you the norm of all
  gradients together?
- Sum |g|^p over this rank's shards and call all_reduce once, where p is `norm_type`. Then add the same sum
  over the replicated gradients, once. The norm is the p-th root. For p = inf, take the maximum instead of the
  sum.
- p = norm_type; power = torch.zeros(()), in the gradients' dtype; for each gradient g of the shards: power +=
  (g.abs() ** p).sum(); all_reduce(power); add the same sum over the replicated gradients; norm = power ** (1
  / p). For inf: torch.maximum(power, g.abs().max()) if g.numel(), and ReduceOp.MAX. Then g.mul_((max_norm /
  (norm + 1e-6)).clamp(max=1)).
"""

import math
from collections.abc import Sequence

import torch

from helpers.checks.author import *
from helpers.exercises.nb13_fsdp_in_practice.in_ranks import ClipInputs, run_clip


def case(draw: Draw) -> Case:
    n, dtype = draw.ranks, draw.dtype(torch.float32, torch.float64)
    generator = draw.generator()
    p = draw.of(2.0, 2.0, 1.0, 3.0, math.inf)
    shapes = [draw.shape((1, 2, 3), least=1) for _ in range(draw.whole(1, 3))]
    zero = draw.of(False, False, False, False, False, True)
    kind = draw.of("clipped", "clipped", "clipped", "left as they are", "just below")

    def draw_gradient(shape: tuple[int, ...]) -> torch.Tensor:
        x = torch.randn(shape, generator=generator, dtype=torch.float64) * draw.of(1.0, 30.0)
        return (x * (not zero)).to(dtype)

    # split by rows as fully_shard does, so that the last ranks get nothing if there are few rows
    rows = [n * draw.of(0, 1, 2) + draw.whole(0, 2) for _ in shapes]
    rows[-1] = max(1, rows[-1])
    wholes = [draw_gradient((count, *shape[1:])) for count, shape in zip(rows, shapes, strict=True)]
    cut = [[part.clone() for part in _split_rows(whole, n)] for whole in wholes]
    unused = draw.of(None, None, 0) if len(shapes) > 1 else None
    sharded: list[list[torch.Tensor | None]] = [
        [None if i == unused else cut[i][r] for i in range(len(cut))] for r in range(n)
    ]
    copies: list[torch.Tensor | None] = [
        draw_gradient(draw.shape((0, 1), least=1)) for _ in range(draw.of(0, 1, 2))
    ]
    if len(copies) == 2:
        copies[0] = None
    shapes_of = [tuple(c.shape) if c is not None else (2,) for c in copies]
    used = [own for i, own in enumerate(wholes) if i != unused]
    same_on_all = [c for c in copies if c is not None]
    norm = total_norm([*used, *same_on_all], p)
    ratio = {"clipped": 0.3, "left as they are": 4.0, "just below": 1.001}[kind]
    max_norm = max(norm * ratio, 0.01)

    sizes = [[tuple(own[r].shape) for own in cut] for r in range(n)]
    by = clip_factor(norm, max_norm)
    right = [
        {"norm": torch.tensor(norm, dtype=dtype)}
        | {f"sharded[{i}]": _scaled(g, by) for i, g in enumerate(own)}
        | {f"replicated[{i}]": _scaled(g, by) for i, g in enumerate(copies)}
        for own in sharded
    ]
    return Case(
        f"norm_type {p:g}, {len(wholes)} sharded and {len(copies)} replicated gradients, {dtype}, {kind}",
        [(ClipInputs(sharded[r], sizes[r], copies, shapes_of, max_norm, p),) for r in range(n)],
        right=NamedParts(right),
    )


def total_norm(tensors: Sequence[torch.Tensor], p: float) -> float:
    """Return the p-norm of all elements of some tensors."""
    values = torch.cat([t.flatten().double().abs() for t in tensors]) if tensors else torch.zeros(1)
    if p == math.inf:
        return float(values.max()) if len(values) else 0.0
    return float((values**p).sum() ** (1 / p))


def clip_factor(norm: float, max_norm: float) -> float:
    """Return the factor by which clip_grad_norm_ multiplies the gradients."""
    return min(1.0, max_norm / (norm + 1e-6))


def _split_rows(whole: torch.Tensor, n: int) -> list[torch.Tensor]:
    found = list(whole.chunk(n)) if len(whole) else []
    return found + [whole[:0]] * (n - len(found))


def _scaled(g: torch.Tensor | None, factor: float) -> torch.Tensor | None:
    return None if g is None else g * factor


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_reduce",)),
        Calls("all_reduce", 1, why="Each rank sends one number."),
        Calls(bytes_per_call=8, text="one number is sent"),
        WaitsForAll(),
    ),
    failed=(
        CrashAdvice(
            "'(int|float)' object|not (int|float)$",
            "A rank may have no gradient at all, and then `sum(...)` or `max(...)` returns a plain number. "
            "Start from a tensor: `torch.zeros(())`.",
            when=lambda case, run: any(
                all(g is None or not g.numel() for g in drawn.sharded) for (drawn,) in case.given
            ),
        ),
        HangAdvice(
            "Every rank must make this call, even if it has no gradient, or only empty ones."
        ),
    ),
    kind=Kind.MODULE,
    driver=run_clip,
)
