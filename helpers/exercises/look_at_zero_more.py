"""What is wrong with answers of notebook 11 that scatter gradients or train under fully_shard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from helpers.exercises.compare import difference
from helpers.exercises.look_at_held import in_tensors, odd_one, of_the_classifier
from helpers.exercises.look_at_sgd import PARITY, apart
from helpers.exercises.look_at_zero import look_at_unequal_shards
from helpers.exercises.model import Case
from helpers.exercises.problems import first_problem
from helpers.exercises.zero_truth import trained
from helpers.ranks.failures import Deadlock, RankFailed
from helpers.ranks.run import Run


@dataclass(frozen=True)
class ShardIs:
    """The slice of the mean gradient, flat and padded, that a rank must be left with."""

    padded: torch.Tensor
    rank: int
    own: int

    def __call__(self, value: Any) -> str:
        shard = value.get("shard") if isinstance(value, dict) else None
        wanted = self.padded[self.rank * self.own : (self.rank + 1) * self.own]
        if not isinstance(shard, torch.Tensor):
            return f"{type(shard).__name__} came back, not a tensor with {self.own:,} elements"
        close = PARITY if wanted.dtype == torch.float64 else 1e-5
        if problem := difference(wanted, shard, close):
            return f"its shard: {problem}"
        if value["weights kept"] is not True:
            return "the weights have changed: gradients alone are scattered here"
        if left := value["left"]:
            return f"`{left[0]}` still has its gradient"
        if value["whole"] > self.own:
            return (
                f"its shard is a view of a tensor with {value['whole']:,} elements; it should have "
                f"{self.own:,} of its own"
            )
        if value["kept"] > self.own + 16:
            return (
                f"{value['kept']:,} elements are still held, {in_tensors(value['sizes'])}; the shard's "
                f"{self.own:,} are enough"
            )
        return ""


def look_at_scatter(case: Case, run: Run) -> str:
    """Say what a scattered gradient mostly gets wrong."""
    if failed := look_at_unequal_shards(run):
        return failed
    if run.failure is not None or case.expected is None:
        return ""
    n, padded = case.world_size, case.expected[0].padded
    for check, value in zip(case.expected, run.values, strict=True):
        problem, shard = check(value), value["shard"]
        if "still has" in problem:
            return "Set `p.grad = None` for every parameter: its storage is free then."
        if "view of" in problem:
            return (
                "A slice keeps the whole tensor alive. Let reduce_scatter write into a tensor of the "
                "shard's length, or `clone()` the slice."
            )
        if "still held" in problem:
            odd = odd_one(value["sizes"], of_the_classifier(check.own, n))
            return f"{odd}What was whole must not outlive the call: keep no attribute and no list of it."
        if not problem or not isinstance(shard, torch.Tensor):
            continue
        own = padded[check.rank * check.own : (check.rank + 1) * check.own]
        if shard.shape == own.shape and shard.dtype == own.dtype:
            return _related(shard, own, n)
        if shard.shape == own.shape:
            return (
                f"The gradients are {own.dtype} here, and so must the shard be: `flat.new_empty(n)` takes "
                "the dtype of `flat` over; convert nothing."
            )
        if shard.numel() < check.own and shard.dim() == 1:
            return f"{check.own:,} elements on every rank: round up, and let zeros fill the last shard."
    return ""


def _related(shard: torch.Tensor, own: torch.Tensor, n: int) -> str:
    for factor, words in (
        (n, f"the sum over the ranks: divide it by {n}, or ask for ReduceOp.AVG"),
        (1 / n, "divided by the world size twice: ReduceOp.AVG divides already"),
    ):
        if torch.allclose(shard, factor * own, rtol=1e-4, atol=1e-7):
            return f"This is {words}."
    return (
        "Flatten and join the gradients in the order of `params`, pad at the end, and let rank r "
        "take the r-th part of the mean."
    )


@dataclass(frozen=True)
class FullWeightsAre:
    """The whole weights that every rank must return, by name; dealt: elements of a rank's shards."""

    wanted: dict[str, torch.Tensor]
    dealt: int

    def __call__(self, value: Any) -> str:
        if not isinstance(value, dict):
            return "its weights did not come back"
        if value["wrapped"]:
            return f"`{value['wrapped'][0]}` comes back as a DTensor, which holds one shard"
        got = value["weights"]
        if not isinstance(got, dict):
            return f"it returns {type(got).__name__}; a dict from name to tensor is wanted"
        if sorted(got) != sorted(self.wanted):
            return f"the names returned are {', '.join(map(str, got)) or 'none'}"[:200]
        for name, wanted in self.wanted.items():
            if problem := apart(wanted, got[name]):
                return f"`{name}`: its elements {problem}"
        if value["sharded"] < len(self.wanted):
            return f"{value['sharded']} of {len(self.wanted)} parameters of `model` are sharded"
        if not value["root"]:
            return "the layers are under fully_shard, `model` itself is not"
        if value["elements"] > self.dealt:
            return f"its shards have {value['elements']:,} elements; {self.dealt:,} are its share"
        return ""


def look_at_fsdp2(case: Case, run: Run) -> str:
    """Say what training under fully_shard mostly gets wrong."""
    failure = run.failure
    if isinstance(failure, Deadlock):
        return (
            "Forward, backward and full_tensor() are collective calls: all ranks make all of them, "
            "also where only one rank wants the result."
        )
    if isinstance(failure, RankFailed) and "DTensor" in str(failure):
        return "Ordinary tensors do not mix with DTensors: broadcast before fully_shard."
    if failure is not None or case.expected is None:
        return ""
    problem = first_problem(case, run)
    if "DTensor" in problem or "are not those of the model" in problem:
        return "`p.full_tensor()` gathers the whole weight, on every rank."
    if "names returned" in problem:
        return "Use `model.named_parameters()`: its names do not change under fully_shard."
    if "are sharded" in problem:
        return (
            "Call fully_shard(layer, mesh=mesh) for each layer that has parameters, then "
            "fully_shard(model, mesh=mesh)."
        )
    if "itself is not" in problem:
        return (
            "Last comes fully_shard(model, mesh=mesh). Without it each layer is a root of its own, and a "
            "root's weights stay whole from forward to backward."
        )
    if "its elements" in problem:
        return _known_mistake(case, run) or _trained_wrongly(case, run)
    return ""


def _known_mistake(case: Case, run: Run) -> str:
    """Say that gradients were never cleared, or that another optimizer has stepped."""
    seed, steps, lr = (case.inputs[0][k] for k in (4, 2, 3))
    x, y = (torch.cat([mine[k] for mine in case.inputs]) for k in (0, 1))
    got = run.values[0]["weights"]
    for words, other in (
        (
            "The gradients of all steps add up: zero_grad() comes before each backward.",
            trained(x, y, seed, steps, lr, clears=False),
        ),
        (
            "These are the steps of SGD; the task wants Adam.",
            trained(x, y, seed, steps, lr, name="SGD"),
        ),
    ):
        if not any(apart(other[name], got[name]) for name in other):
            return words
    return ""


def _trained_wrongly(case: Case, run: Run) -> str:
    assert case.expected is not None
    name = next(iter(case.expected[0].wanted))
    firsts = [value["before"][name] for value in run.values]
    got, rows = run.values[0]["weights"][name], len(firsts[0]) // case.world_size
    if not isinstance(got, torch.Tensor):
        return ""
    pieces = [first.chunk(case.world_size)[r] for r, first in enumerate(firsts)]
    if torch.equal(got, torch.cat(pieces)) or torch.equal(got, firsts[0]):
        return (
            "The weights have not moved: fully_shard puts new parameters into the model, so make the "
            "optimizer after it."
        )
    here = case.expected[0].wanted[name]
    if rows and not apart(here[:rows], got[:rows]):
        return ""
    far = [float((got - firsts[0]).abs().max()), float((got[-1] - firsts[-1][-1]).abs().max())]
    steps, lr = case.inputs[0][2], case.inputs[0][3]
    if far[0] > 2 * steps * lr >= far[1]:
        return (
            "The last rows come from the last rank's own start: fully_shard cuts what each rank has. "
            "Broadcast rank 0's weights first."
        )
    return (
        "Rank 0's weights are broadcast before fully_shard. Then each step: zero_grad, the mean "
        "cross_entropy of this rank's samples, backward, step of torch.optim.Adam(model.parameters(), "
        "lr=lr). fully_shard averages the gradients: no other division."
    )
