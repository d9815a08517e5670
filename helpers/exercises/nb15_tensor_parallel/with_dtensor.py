"""15.6 The whole block with DTensor (6 min, ●●○○○)

- There are seven Linear layers. Which of these layers read the input that every rank has, and which of them
  end with a sum?
- The keys of the plan are paths: attention.q, attention.k, attention.v, attention.o, mlp.gate, mlp.up,
  mlp.down. Use ColwiseParallel() for the layers that read the input, and RowwiseParallel() for the layers
  that produce the output. The norm is not in the plan.
- plan = {f'attention.{n}': ColwiseParallel() for n in 'qkv'}; plan['attention.o'] = RowwiseParallel(); do the
  same for the MLP; return parallelize_module(model, mesh, plan)
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb15_tensor_parallel.in_ranks.block import (
    Block,
    BlockInputs,
    run_parallel_block,
)
from helpers.exercises.nb15_tensor_parallel.shared import LAYER_REFERENCE

MESHES = {2: (2,), 3: (3,), 4: (2, 2)}
"""The sizes of the mesh for each number of ranks. The model is cut over one of its dimensions."""


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
    shape = (2, 3, features)
    x, grad = (torch.randn(shape, generator=draw.generator(), dtype=dtype) for _ in range(2))
    return Case(
        f"a mesh of {' x '.join(map(str, sizes))}, cut over {p} ranks, {heads} heads, {dtype}",
        [(BlockInputs(sizes, "ab"[dimension], state, heads, x, grad),)] * n,
        right=LAYER_REFERENCE,
        facts={"p": p},
        seconds=20.0,
    )


EXERCISE = Exercise(
    case,
    (
        Calls(
            phase="forward",
            exactly=2,
            missing="Two sums are needed: at the end of attention and at the end of the MLP.",
            why="Two sums are enough: at the end of attention and at the end of the MLP.",
        ),
    ),
    kind=Kind.MODULE,
    driver=run_parallel_block,
    reported=("block", "autograd"),
    sizes=tuple(MESHES),
    count=12,
)
