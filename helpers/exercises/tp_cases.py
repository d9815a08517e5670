"""The worlds on which answers of notebook 13 are tried, and how much may travel in each."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.nn.functional import cross_entropy, linear

from helpers.exercises import draws
from helpers.exercises.model import Case
from helpers.exercises.tp_models import Block, attention, gated_mlp
from helpers.exercises.tp_parts import PartsAre

_DTYPE = torch.float64


def column_cases(rng: random.Random) -> Iterator[Case]:
    yield _layer_case(rng, 2, (3, 4), (5,), "column")
    yield _layer_case(rng, 3, (2, 5), (2, 3), "column", bias=False)
    yield _layer_case(rng, 4, (1, 3), (2,), "column", trained=False)


def row_cases(rng: random.Random) -> Iterator[Case]:
    yield _layer_case(rng, 2, (3, 4), (5,), "row")
    yield _layer_case(rng, 3, (2, 5), (2, 3), "row", bias=False)
    yield _layer_case(rng, 4, (1, 3), (2,), "row")


def _layer_case(
    rng: random.Random,
    world_size: int,
    sizes: tuple[int, int],
    batch: tuple[int, ...],
    cut: str,
    bias: bool = True,
    trained: bool = True,
) -> Case:
    """Make a dense layer; sizes: of one rank's part, and of the other side, which stays whole."""
    own, other = sizes
    ins, outs = (other, own * world_size) if cut == "column" else (own * world_size, other)
    weight = draws.tensor(rng, outs, ins, dtype=_DTYPE).requires_grad_()
    shift = draws.tensor(rng, outs, dtype=_DTYPE).requires_grad_() if bias else None
    x = draws.tensor(rng, *batch, ins, dtype=_DTYPE).requires_grad_()
    y = linear(x, weight, shift)
    grad = draws.tensor(rng, *batch, outs, dtype=_DTYPE)
    y.backward(grad)
    inputs, expected = [], []
    for rank in range(world_size):
        part = slice(rank * own, (rank + 1) * own)
        # what a rank has of the weight, of the bias, of the input and of the output
        w = (part,) if cut == "column" else (slice(None), part)
        b, i, o = (part, ..., (..., part)) if cut == "column" else (slice(None), (..., part), ...)
        given = (_of(x)[i].contiguous(), grad[o].contiguous())
        inputs.append((_of(weight), _of(shift), *given, trained))
        wanted = {
            "weight": _of(weight)[w],
            "bias": None if shift is None else _of(shift)[b],
            "output": _of(y)[o],
            "gradient of the input": _grad(x)[i] if trained else None,
            "gradient of weight": _grad(weight)[w],
            "gradient of bias": None if shift is None else _grad(shift)[b],
        }
        held = sum(wanted[n].nbytes for n in ("weight", "bias") if wanted[n] is not None)
        expected.append(PartsAre(wanted, world_size, most_bytes=held))
    label = f"{world_size} ranks, {ins} to {outs} features"
    label += "" if bias else ", no bias"
    label += "" if trained else ", an input without gradient"
    return Case(label, world_size, inputs, expected, timeout_s=8.0)


def _of(tensor: torch.Tensor | None) -> Any:
    return None if tensor is None else tensor.detach().clone()


def _grad(tensor: torch.Tensor) -> torch.Tensor:
    assert tensor.grad is not None
    return tensor.grad


def _normal(rng: random.Random, *shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(rng.randrange(1 << 31))
    return torch.randn(shape, generator=generator, dtype=_DTYPE)


def mlp_cases(rng: random.Random) -> Iterator[Case]:
    for counts, features in (((3, 3), 4), ((2, 3, 1), 5), ((2, 2, 2, 2), 3)):
        hidden = sum(counts)
        weights = {
            "gate": _normal(rng, hidden, features),
            "up": _normal(rng, hidden, features),
            "down": _normal(rng, features, hidden),
        }
        yield _block_case(
            f"{len(counts)} ranks, hidden elements {_listed(counts)}",
            _normal(rng, 2, 3, features),
            _normal(rng, 2, 3, features),
            weights,
            counts,
            gated_mlp,
        )


def attention_cases(rng: random.Random) -> Iterator[Case]:
    for heads, size in (((2, 2), 3), ((2, 1, 2), 2)):
        features, inner = 6, sum(heads) * size
        weights = {name: _normal(rng, inner, features) for name in ("query", "key", "value")}
        weights["out"] = _normal(rng, features, inner)
        yield _block_case(
            f"{len(heads)} ranks, heads {_listed(heads)}",
            _normal(rng, 2, 4, features),
            _normal(rng, 2, 4, features),
            weights,
            [count * size for count in heads],
            attention,
            size,
            instead={"that is attention without is_causal=True": (size, False)},
        )


def _listed(counts: Sequence[int]) -> str:
    return " + ".join(map(str, counts))


def _block_case(
    label: str,
    x: torch.Tensor,
    grad: torch.Tensor,
    weights: dict[str, torch.Tensor],
    counts: Sequence[int],
    dense: Any,
    *more: Any,
    instead: Mapping[str, tuple[Any, ...]] | None = None,
) -> Case:
    """Cut all weights but the last by rows, the last by columns; compare with the dense function.

    instead: other last arguments of the dense function, by the words for the mistake that they make.
    """
    last = list(weights)[-1]
    whole = {"x": x, **weights}
    leaves = {name: tensor.clone().requires_grad_() for name, tensor in whole.items()}
    y = dense(*leaves.values(), *more)
    y.backward(grad)
    mistaken = {words: dense(*whole.values(), *last) for words, last in (instead or {}).items()}
    inputs, expected, begin = [], [], 0
    for count in counts:
        part = slice(begin, begin + count)
        cut: dict[str, tuple[slice, ...]] = {
            name: (slice(None), part) if name == last else (part,) for name in weights
        }
        cut["x"] = ()  # everybody has all of it
        own = {name: tensor[cut[name]].contiguous() for name, tensor in whole.items()}
        wanted = {"output": _of(y)}
        wanted |= {f"gradient of {n}": _grad(leaf)[cut[n]] for n, leaf in leaves.items()}
        inputs.append((grad, own, *more))
        expected.append(PartsAre(wanted, len(counts), instead=mistaken))
        begin += count
    return Case(label, len(counts), inputs, expected, timeout_s=8.0)


def input_bytes(case: Case, rank: int) -> int:
    """Give the bytes of the input of a block."""
    nbytes: int = case.inputs[rank][1]["x"].nbytes
    return nbytes


def layer_bytes(case: Case, rank: int) -> int:
    """Give the bytes of a layer's input."""
    nbytes: int = case.inputs[rank][2].nbytes
    return nbytes


def output_bytes(case: Case, rank: int) -> int:
    """Give the bytes of a layer's output."""
    nbytes: int = case.inputs[rank][3].nbytes
    return nbytes


def needs_input_gradient(case: Case, rank: int) -> int:
    """Count the all_reduces that backward needs: none if nobody asks for the input's gradient."""
    return int(case.inputs[rank][4])


def loss_cases(rng: random.Random) -> Iterator[Case]:
    worlds: tuple[tuple[Sequence[int], int, torch.dtype, float], ...] = (
        ((5, 5), 4, torch.float64, 1.0),
        ((4, 3, 3), 5, torch.float32, 1.0),
        ((1, 6, 2, 2), 3, torch.float64, 1000.0),
    )
    for counts, length, dtype, scale in worlds:
        words = sum(counts)
        logits = (scale * _normal(rng, length, words)).to(dtype).requires_grad_()
        target = torch.tensor(rng.choices(range(words), k=length))
        loss = cross_entropy(logits, target)
        loss.backward()
        inputs, expected, first = [], [], 0
        for count in counts:
            part = (slice(None), slice(first, first + count))
            wanted = {"output": _of(loss), "gradient of logits": _grad(logits)[part]}
            inputs.append((_of(logits)[part].contiguous(), target, first))
            usual = {
                f"that is the sum over the {length} tokens, not their mean": _of(loss) * length
            }
            expected.append(PartsAre(wanted, len(counts), called="loss", instead=usual))
            first += count
        name = str(dtype).removeprefix("torch.")
        large = ", logits in the thousands" if scale > 1 else ""
        label = f"{len(counts)} ranks, words {_listed(counts)}, {name}{large}"
        yield Case(label, len(counts), inputs, expected, timeout_s=8.0)


def two_numbers_a_token(case: Case, rank: int) -> int:
    logits, *_ = case.inputs[rank]
    nbytes: int = 2 * len(logits) * 8  # a sum and a target's logit, be it in float64
    return nbytes


def dtensor_cases(rng: random.Random) -> Iterator[Case]:
    for world_size, heads, features in ((2, 4, 8), (3, 3, 6)):
        seed = rng.randrange(1000)
        x, grad = _normal(rng, 2, 3, features), _normal(rng, 2, 3, features)
        block, leaf = Block.seeded(seed, features, heads), x.clone().requires_grad_()
        y = block(leaf)
        y.backward(grad)
        wanted = {"output": _of(y), "gradient of the input": _grad(leaf)}
        wanted |= {f"gradient of {name}": _grad(p) for name, p in block.named_parameters()}
        shapes = {n: _cut(n, list(p.shape), world_size) for n, p in block.named_parameters()}
        yield Case(
            f"{world_size} ranks, {heads} heads, {features} features",
            world_size,
            [(seed, heads, x, grad)] * world_size,
            [PartsAre(wanted, world_size, shapes=shapes)] * world_size,
            timeout_s=10.0,
        )


def _cut(name: str, shape: list[int], world_size: int) -> list[int]:
    """Give the shape of one rank's part of a parameter of `Block`."""
    layer = name.split(".")[-2]
    if layer in {"q", "k", "v", "gate", "up"}:
        return [shape[0] // world_size, shape[1]]
    if layer in {"o", "down"} and len(shape) == 2:
        return [shape[0], shape[1] // world_size]
    return shape
