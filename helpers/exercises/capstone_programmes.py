"""What the ranks run around an answer of notebook 15: a mesh, a training on it, an expert, a script.

Each gives back plain values; the launching process alone knows what they must be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.data import TensorDataset

from helpers.exercises.expert_models import Expert
from helpers.exercises.mesh_models import two_layers
from helpers.exercises.script_models import classifier_with_dropout
from helpers.exercises.sgd_models import weights
from helpers.exercises.start_groups import watch_new_group
from helpers.exercises.tp_programmes import there_and_back
from helpers.ranks.inside import launch_folder

Samples = tuple[torch.Tensor, torch.Tensor]


def lay_out(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    sizes: Mapping[str, int],
    order: str,
    per_host: int,
    x: torch.Tensor,
) -> Any:
    """Call the answer, its calls of `new_group` compared across ranks."""
    with watch_new_group(rank, world_size):
        return answer(rank, world_size, dict(sizes), order, per_host, x)


def train_on_a_mesh(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    tp: int,
    seed: int,
    hidden: int,
    *data: Any,
) -> Any:
    """Let the answer train two layers that begin differently on each rank."""
    up, down = two_layers(seed + rank, hidden)
    return answer(rank, world_size, tp, up, down, *data)


def route_tokens(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    x: torch.Tensor,
    router: torch.Tensor,
    weight: torch.Tensor,
    grad: torch.Tensor,
) -> dict[str, Any]:
    """Let the answer send this rank's tokens through the experts, there and back."""
    x, router = x.clone().requires_grad_(), router.clone().requires_grad_()
    expert = Expert(weight)
    rows: list[int] = []
    expert.register_forward_pre_hook(lambda _, given: rows.append(len(given[0])))
    found = there_and_back(lambda: answer(rank, world_size, x, router, expert), grad)
    return {
        "tokens": sum(rows),
        "calls": len(rows),
        **found,
        "gradient of x": _grad(x, not len(x)),
        "gradient of the router": _grad(router, not len(x)),
        "gradient of the expert": _grad(expert.weight, not rows),
    }


def _grad(leaf: torch.Tensor, unused: bool) -> torch.Tensor | None:
    """Copy a gradient; where nothing went through, none is as good as zeros."""
    return torch.zeros_like(leaf) if leaf.grad is None and unused else leaf.grad


def run_script(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    seed: int,
    train: Samples,
    test: Samples,
    name: str,
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """Let the answer train a model that begins differently on each rank, and note what it does."""
    model = classifier_with_dropout(seed + rank)
    path = launch_folder() / name
    seen = _Onlooker(model, train[0])
    with seen.watch_saves(rank):
        history = answer(
            rank,
            world_size,
            model,
            TensorDataset(*train),
            TensorDataset(*test),
            str(path),
            **settings,
        )
    return {
        "history": history,
        "weights": seen.after,
        "batches": seen.batches,
        "modes": seen.modes,
        "evaluated": seen.evaluated,
        "saves": seen.saves,
        "checkpoint": _loaded(path, seed) if rank == 0 else "",
    }


class _Onlooker:
    """Notes which samples are learned from, in which mode, how many are evaluated, and every step."""

    def __init__(self, model: nn.Module, samples: torch.Tensor) -> None:
        self.after: list[torch.Tensor] = []
        self.batches: list[list[int]] = []
        self.modes: list[bool] = []
        self.evaluated = self.saves = 0
        self._number = {row.numpy().tobytes(): i for i, row in enumerate(samples)}
        model.register_forward_pre_hook(self._forward)
        register_optimizer_step_post_hook(lambda *_: self.after.append(weights(model)))

    def _forward(self, model: nn.Module, given: tuple[Any, ...]) -> None:
        numbers = [self._number.get(row.numpy().tobytes(), -1) for row in given[0]]
        if not torch.is_grad_enabled() or set(numbers) == {-1}:
            self.evaluated += len(given[0])
            return
        self.batches.append(numbers)
        self.modes.append(model.training)

    @contextmanager
    def watch_saves(self, rank: int) -> Iterator[None]:
        """Count calls of torch.save; each rank writes a file of its own, so that none is broken by chance."""
        real = torch.save

        def watched(obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
            self.saves += 1
            own = f"{f}.{rank}" if rank and isinstance(f, (str, Path)) else f
            real(obj, own, *args, **kwargs)

        torch.save = watched
        try:
            yield
        finally:
            torch.save = real


def _loaded(path: Path, seed: int) -> torch.Tensor | str:
    """Load a checkpoint into a fresh model, as somebody without a process group would."""
    if not path.exists():
        return "there is no file"
    model = classifier_with_dropout(seed)
    try:
        model.load_state_dict(torch.load(path))
    except Exception as error:  # whatever is wrong with the file, the learner reads it
        said = str(error).partition("\n")[0]
        return f"{type(error).__name__}: {said[:200]}"
    return weights(model)
