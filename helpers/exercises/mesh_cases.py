"""The worlds on which notebook 15's mesh exercises are tried, and how they must talk in each dimension.

A mesh is written as torch writes it: the last dimension is the innermost, whose groups are neighbours.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch

from helpers.exercises import draws
from helpers.exercises.compare import difference
from helpers.exercises.mesh_models import CLASSES, DTYPE, Parts, steps_of_one, two_layers
from helpers.exercises.model import Case
from helpers.trace.events import Event, Trace
from helpers.trace.mismatch import at
from helpers.views.plain import plural

PARITY = 1e-9
_HIDDEN = 12
_BYTES = 8


def group_of(sizes: Sequence[int], dim: int, rank: int) -> tuple[int, list[int]]:
    """Give a rank's coordinate along a dimension, and the ranks that differ from it in that one alone."""
    stride = 1
    for size in sizes[dim + 1 :]:
        stride *= size
    coordinate = rank // stride % sizes[dim]
    first = rank - coordinate * stride
    return coordinate, [first + i * stride for i in range(sizes[dim])]


@dataclass(frozen=True)
class LayoutIs:
    """For each dimension: coordinate, ranks, hosts, sum. Called with what came back: "" or what is wrong."""

    wanted: Mapping[str, tuple[int, list[int], int, torch.Tensor]]

    def __call__(self, value: Any) -> str:
        if value is None:
            return "nothing came back"
        if not isinstance(value, dict) or value.keys() != self.wanted.keys():
            return f"a dict with the keys {', '.join(self.wanted)} is wanted"
        for name, wanted in self.wanted.items():
            got = value[name]
            if not isinstance(got, (tuple, list)) or len(got) != len(wanted):
                return f"{name}: four things are wanted: coordinate, ranks, hosts and sum"
            words = ("coordinate", "ranks of the group", "hosts", "sum")
            for word, right, own in zip(words, wanted, got, strict=True):
                if problem := difference(right, own):
                    return f"{name}, {word}: {problem}"
        return ""


def layout_cases(rng: random.Random) -> Iterator[Case]:
    worlds: tuple[tuple[dict[str, int], str, int, torch.dtype], ...] = (
        ({"tp": 2, "dp": 1, "pp": 2}, "tp-dp-pp", 2, torch.float32),
        ({"tp": 2, "dp": 3}, "dp-tp", 4, torch.int64),
        ({"pp": 2, "tp": 2, "dp": 2}, rng.choice(("tp-dp-pp", "tp-pp-dp")), 2, torch.float64),
    )
    for sizes, order, per_host, dtype in worlds:
        names = order.split("-")[::-1]
        shape = [sizes[name] for name in names]
        world_size = len(list(product(*map(range, shape))))
        xs = draws.tensors(rng, world_size, 3, dtype=dtype)
        expected = []
        for rank in range(world_size):
            wanted = {}
            for dim, name in enumerate(names):
                coordinate, ranks = group_of(shape, dim, rank)
                hosts = len({r // per_host for r in ranks})
                total = torch.stack([xs[r] for r in ranks]).sum(0)
                wanted[name] = (coordinate, ranks, hosts, total)
            expected.append(LayoutIs(wanted))
        listed = ", ".join(f"{name} {size}" for name, size in sizes.items())
        yield Case(
            f"{world_size} ranks: {listed}; order {order}, {per_host} ranks on a host",
            world_size,
            [(sizes, order, per_host, x) for x in xs],
            expected,
            timeout_s=8.0,
        )


def summed_in_each_group(trace: Trace, case: Case) -> str:
    """Say which rank did not sum once in each of its groups. One of a single rank need not be summed."""
    for rank in range(case.world_size):
        wanted = sorted(w[1] for w in case.expected[rank].wanted.values() if len(w[1]) > 1)  # type: ignore[index]
        used = [e.group_ranks for e in trace.of(rank) if e.op == "all_reduce"]
        if sorted(list(group) for group in used if len(group) > 1) != wanted:
            listed = " and ".join(str(list(group)) for group in used) or "no group"
            return (
                f"rank {rank} calls all_reduce in {listed}; wanted is once in each of its groups, "
                f"{' and '.join(map(str, wanted))}."
            )
    return ""


@dataclass(frozen=True)
class PartsAfterSteps:
    """A rank's parts of both weights after every step. Called with what it gave: "" or what is wrong.

    wanted: for every step, the parts of each tp coordinate. before: the parts with which training begins.
    own: those that this rank had itself.
    """

    wanted: Sequence[Sequence[Parts]]
    before: Sequence[Parts]
    tp_rank: int
    own: Parts

    def __call__(self, value: Any) -> str:
        if value is None:
            return "nothing came back"
        if not isinstance(value, (list, tuple)):
            return f"a list is wanted, not {type(value).__name__}"
        if len(value) != len(self.wanted):
            return f"{len(value)} entries, and there were {plural(len(self.wanted), 'step')}"
        for step, (wanted, got) in enumerate(zip(self.wanted, value, strict=True), 1):
            if not isinstance(got, (tuple, list)) or len(got) != 2:
                return "each entry is a pair: this rank's parts of up and of down"
            for name, right, mine in zip(("up", "down"), wanted[self.tp_rank], got, strict=True):
                if problem := difference(right, mine, PARITY):
                    where = f"after step {step}, its part of {name}: {problem}"
                    return where + self._relation(step, list(got), value)
        return ""

    def _relation(self, step: int, got: list[Any], value: Any) -> str:
        begin = self.before[self.tp_rank]
        shaped = all(
            isinstance(g, torch.Tensor) and g.shape == w.shape and g.dtype == w.dtype
            for g, w in zip(got, begin, strict=True)
        )
        if not shaped:
            return ""
        same = len(value) > 1 and all(
            torch.equal(a, b) for a, b in zip(value[0], value[-1], strict=False)
        )
        if step == 1 and _apart(got, begin) < PARITY:
            return "; no step moves the weights" if same else "; the first step has not been made"
        if same:
            return "; all entries hold the same values"
        return ", and before that it was right" if step > 1 else self._first(got)

    def _first(self, got: list[Any]) -> str:
        """Say what a wrong first step may come from."""
        begin, wanted = self.before[self.tp_rank], self.wanted[0]
        for tp_rank, parts in enumerate(wanted):
            if tp_rank != self.tp_rank and _apart(got, parts) < PARITY:
                return (
                    f"; it is the part of tp coordinate {tp_rank}, and this rank has {self.tp_rank}"
                )
        nearest = min(_apart(got, other) for other in self.before)
        if nearest < _apart(got, begin) / 2:
            return "; this rank began with the part of another"
        if _apart(got, self.own) < _apart(got, begin) / 2:
            return "; this rank began with weights of its own"
        moved = [_flat(one) - _flat(begin) for one in (got, wanted[self.tp_rank])]
        k = float(moved[0] @ moved[1] / (moved[1] @ moved[1]))
        if abs(k - 1) > 0.01 and torch.allclose(moved[0], k * moved[1], rtol=1e-3, atol=1e-7):
            return f"; the step is {k:.3g} times what it should be"
        return ""


def _flat(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.cat([part.flatten() for part in parts])


def _apart(one: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> float:
    return float((_flat(one) - _flat(other)).norm())


def training_cases(rng: random.Random) -> Iterator[Case]:
    for dp, tp, share, steps in ((2, 2, 6, 3), (3, 1, 4, 2), (1, 3, 5, 2)):
        world_size, batch_size, seed = dp * tp, dp * share, rng.randrange(1000)
        x, y = draws.digits(rng, steps * batch_size + 3, DTYPE)
        lr = rng.choice((0.25, 0.5))
        whole = steps_of_one(two_layers(seed, _HIDDEN), x, y, batch_size, steps, lr)
        expected = []
        begin = [layer.weight.detach() for layer in two_layers(seed, _HIDDEN)]
        after, before = [_parts(weights, tp) for weights in whole], _parts(begin, tp)
        for rank in range(world_size):
            own = [layer.weight.detach() for layer in two_layers(seed + rank, _HIDDEN)]
            expected.append(PartsAfterSteps(after, before, rank % tp, _parts(own, tp)[rank % tp]))
        yield Case(
            f"{world_size} ranks: dp {dp}, tp {tp}; {plural(steps, 'step')} of {batch_size} samples",
            world_size,
            [(tp, seed, _HIDDEN, x, y, batch_size, steps, lr)] * world_size,
            expected,
            timeout_s=8.0,
        )


def _parts(weights: Sequence[torch.Tensor], tp: int) -> list[Parts]:
    """Cut both weights for each tp coordinate."""
    up, down = weights
    pairs = zip(up.chunk(tp), down.chunk(tp, dim=1), strict=True)
    return [(rows.clone(), columns.clone()) for rows, columns in pairs]


def each_in_its_dimension(trace: Trace, case: Case) -> str:
    """Say which call carries what does not belong into its group."""
    for rank in range(case.world_size):
        tp, _, hidden, x, _, batch_size, steps, _ = case.inputs[rank]
        shape = (case.world_size // tp, tp)
        (_, dp_group), (_, tp_group) = (group_of(shape, dim, rank) for dim in (0, 1))
        calls = [
            e for e in trace.of(rank) if e.op not in {"span", "broadcast", "scatter", "barrier"}
        ]
        calls = [e for e in calls if len(e.group_ranks) > 1]
        outputs = batch_size // shape[0] * CLASSES * _BYTES
        gradients = hidden // tp * (x.shape[1] + CLASSES) * _BYTES
        for e in calls:
            if list(e.group_ranks) not in (dp_group, tp_group):
                return (
                    f"{_call(e)} in a group of ranks {_listed(e.group_ranks)}; its dp group is "
                    f"{_listed(dp_group)}, its tp group {_listed(tp_group)}."
                )
            if list(e.group_ranks) == tp_group and e.nbytes > outputs:
                return (
                    f"{_call(e)} with {e.nbytes:,} bytes in the group of ranks {_listed(tp_group)}. That is "
                    f"its tp group; the output for its samples has {outputs:,} bytes, and weights and "
                    "gradients of its parts do not belong there."
                )
        in_tp = [e for e in calls if list(e.group_ranks) == tp_group]
        if tp > 1 and not steps <= len(in_tp) <= 2 * steps:
            made = plural(len(in_tp), "call")
            return (
                f"rank {rank} makes {made} in its tp group in {plural(steps, 'step')}; one sum of outputs "
                "a step is right."
            )
        sent = sum(e.nbytes for e in calls if list(e.group_ranks) == dp_group)
        most = steps * (gradients + _BYTES)
        if len(dp_group) > 1 and sent > most:
            return (
                f"rank {rank} hands in {sent:,} bytes in its dp group; {most:,} are enough: the "
                "gradients of its parts, once a step."
            )
    return ""


def _call(event: Event) -> str:
    return f"rank {event.rank} calls {event.call}{at(event)}"


def _listed(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks))
