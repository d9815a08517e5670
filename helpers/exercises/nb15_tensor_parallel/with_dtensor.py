"""15.6 The whole block with DTensor (6 min, ●●○○○)

- Seven Linear layers: which of them read what every rank has, and which end with a sum?
- The keys of the plan are paths: attention.q, attention.k, attention.v, attention.o, mlp.gate, mlp.up,
  mlp.down. Those that read x are ColwiseParallel(), those that produce an output are RowwiseParallel(). The
  norm is not in the plan.
- plan = {f'attention.{n}': ColwiseParallel() for n in 'qkv'}; plan['attention.o'] = RowwiseParallel(); the
  MLP likewise; return parallelize_module(model, mesh, plan)
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb15_tensor_parallel.in_ranks.block import (
    Block,
    Parallelized,
    run_parallelized,
)
from helpers.exercises.nb15_tensor_parallel.shared import by_name, largest

MESHES = {2: (2,), 3: (3,), 4: (2, 2)}
"""The sizes of the meshes for each number of ranks; the model is cut over one of their dimensions."""


def case(draw: Draw) -> Case:
    n, dtype = draw.ranks, draw.dtype(torch.float32, torch.float64)
    sizes = MESHES[n]
    dimension = draw.whole(0, len(sizes) - 1)
    p, heads, features, hidden = sizes[dimension], n, 2 * n, 3 * n
    biases = {name: draw.of(True, False) for name in Block.LAYERS}
    state = {
        name: torch.randn(tensor.shape, generator=draw.generator(), dtype=dtype) / features**0.5
        for name, tensor in Block(features, hidden, heads, biases).state_dict().items()
    }
    block, shape = Block.of(state, heads), (2, 3, features)
    x, grad = (torch.randn(shape, generator=draw.generator(), dtype=dtype) for _ in range(2))
    leaf = x.clone().requires_grad_()
    y = block(leaf)
    y.backward(grad)
    truth = {"output": y.detach(), "gradient of x": leaf.grad}
    truth |= {f"gradient of {name}": each.grad for name, each in block.named_parameters()}
    shapes = {f"shape of {name}": shape_of(name, tensor, p) for name, tensor in state.items()}
    right = {"block": "", **shapes, "autograd": "", **truth}
    parts = by_name([right] * n, largest(truth))
    return Case(
        f"a mesh of {' x '.join(map(str, sizes))}, cut over {p} ranks, {heads} heads, {dtype}",
        [(Parallelized(sizes, "ab"[dimension], state, heads, x, grad),)] * n,
        right=parts,
        facts={"p": p},
        seconds=20.0,
    )


def shape_of(name: str, tensor: torch.Tensor, p: int) -> str:
    """Return the shape of one rank's part of a parameter of the block, split over p ranks."""
    layer, shape = name.split(".")[-2], list(tensor.shape)
    by_rows = layer in {"q", "k", "v", "gate", "up"}
    if layer != "norm" and (by_rows or len(shape) == 2):
        shape[0 if by_rows else 1] //= p
    return str(tuple(shape))


EXERCISE = Exercise(
    case,
    (
        Calls(
            phase="forward",
            exactly=2,
            missing="One sum at the end of attention, one at the end of the MLP.",
            why="One sum at the end of attention, one at the end of the MLP.",
        ),
    ),
    kind=Kind.MODULE,
    driver=run_parallelized,
    reported=("block", "autograd"),
    sizes=tuple(MESHES),
    count=12,
)
