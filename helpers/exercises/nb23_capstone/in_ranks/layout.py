"""Run answers of notebook 23 inside the ranks: a mesh, a training on it, a script.

Each function returns plain values by name; only the launching process knows the right ones. A text
describes a problem that no value shows; "" means none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.data import TensorDataset

from helpers.exercises.shared.in_ranks.groups import watch_new_group
from helpers.ranks.rank_context import launch_folder

PARTS = ("coordinate", "ranks", "hosts", "sum")


def run_mesh_layout(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    sizes: Mapping[str, int],
    order: str,
    per_host: int,
    x: torch.Tensor,
) -> dict[str, Any] | None:
    """Call the answer, compare its `new_group` calls across ranks, and return its results by name."""
    with watch_new_group(rank, world_size):
        got = answer(rank, world_size, dict(sizes), order, per_host, x)
    if got is None:
        return None
    if not isinstance(got, dict):
        return {"dict": f"a {type(got).__name__} came back, not a dict"}
    if set(got) != set(sizes):
        return {"dict": f"its keys are {', '.join(map(str, got))}, not {', '.join(sizes)}"}
    for name, value in got.items():
        if not isinstance(value, (tuple, list)) or len(value) != len(PARTS):
            return {"dict": f"{name} is not a tuple of four: coordinate, ranks, hosts and sum"}
    found = {f"{name}, {p}": got[name][i] for i, p in enumerate(PARTS) for name in sizes}
    return {"dict": "", **found}


# --- training on a mesh ---------------------------------------------------------------------------


class Training(NamedTuple):
    """A mesh's tp size, this rank's own weights of two layers, and the samples of all ranks."""

    tp: int
    up: torch.Tensor
    down: torch.Tensor
    x: torch.Tensor
    y: torch.Tensor
    batch_size: int
    steps: int
    lr: float


def run_training(
    answer: Callable[..., Any], rank: int, world_size: int, training: Training
) -> dict[str, Any] | None:
    """Call the answer to train two layers with this rank's own initial weights; return its parts by step."""
    tp, up, down, x, y, batch_size, steps, lr = training
    layers = [_linear(weight) for weight in (up, down)]
    with watch_new_group(rank, world_size):
        got = answer(rank, world_size, tp, *layers, x.clone(), y.clone(), batch_size, steps, lr)
    if got is None:
        return None
    if not isinstance(got, (list, tuple)):
        return {"list": f"a {type(got).__name__} came back, not a list"}
    if len(got) != steps:
        return {"list": f"{len(got)} entries came back, and there were {steps} steps"}
    found: dict[str, Any] = {"list": ""}
    for step, pair in enumerate(got, 1):
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            return {"list": "an entry is not a pair: this rank's parts of up and of down"}
        for name, part in zip(("up", "down"), pair, strict=True):
            plain = isinstance(part, torch.Tensor) and not hasattr(part, "to_local")
            said = f"a {type(part).__name__}, not a plain tensor"
            found[f"{name} after step {step}"] = part.detach() if plain else said
    return found


def _linear(weight: torch.Tensor) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False, dtype=weight.dtype)
    with torch.no_grad():
        layer.weight.copy_(weight)
    return layer


# --- a training script ----------------------------------------------------------------------------

PIXELS, HIDDEN, CLASSES = 5, 6, 3
Samples = tuple[torch.Tensor, torch.Tensor]


class FixedDropout(nn.Module):
    """Dropout that always drops every third element, so that training can be repeated."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training:
            return x
        kept = (torch.arange(x.shape[-1]) % 3 > 0).to(x.dtype)
        return x * kept * 1.5


def classifier_with_dropout(seed: int) -> nn.Module:
    """Build a classifier in float64 whose weights depend on `seed` alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        hidden = (nn.Linear(PIXELS, HIDDEN), nn.Tanh(), FixedDropout())
        return nn.Sequential(*hidden, nn.Linear(HIDDEN, CLASSES)).double()


def copy_weights(model: nn.Module) -> torch.Tensor:
    """Copy all parameters into one vector, in the model's order."""
    return torch.cat([p.detach().flatten().clone() for p in model.parameters()])


def run_script(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    seed: int,
    train: Samples,
    test: Samples,
    name: str,
    settings: tuple[Any, ...],
) -> dict[str, Any]:
    """Call the answer to train a model that begins differently on each rank, and record what it does."""
    model = classifier_with_dropout(seed + rank)
    path = launch_folder() / name
    recorder = _TrainingRecorder(model, train[0])
    with recorder.record(rank):
        data = (TensorDataset(*train), TensorDataset(*test))
        history = answer(rank, world_size, model, *data, str(path), *settings)
    found = {
        "history": history,
        "weights": recorder.weights_after_step,
        "batches": recorder.batches,
        "without dropout": recorder.without_dropout,
        "evaluated": recorder.evaluated,
        "saves": recorder.saves,
    }
    return {**found, "checkpoint": _load_checkpoint(path, seed)} if rank == 0 else found


class _TrainingRecorder:
    """Records which samples are trained on, in which mode, how many are evaluated, and every step."""

    def __init__(self, model: nn.Module, samples: torch.Tensor) -> None:
        self.weights_after_step: list[torch.Tensor] = []
        self.batches: list[list[int]] = []
        self.without_dropout: list[int] = []
        self.evaluated = self.saves = 0
        self._model = model
        self._number = {row.numpy().tobytes(): i for i, row in enumerate(samples)}
        model.register_forward_pre_hook(self._forward)

    def _forward(self, model: nn.Module, given: tuple[Any, ...]) -> None:
        numbers = [self._number.get(row.numpy().tobytes(), -1) for row in given[0]]
        if not torch.is_grad_enabled() or set(numbers) == {-1}:
            self.evaluated += len(given[0])
            return
        if not model.training:
            self.without_dropout.append(len(self.batches))
        self.batches.append(numbers)

    @contextmanager
    def record(self, rank: int) -> Iterator[None]:
        """Watch steps and files. Each rank writes its own file, so that no two ranks write to one."""
        real = torch.save

        def watched(obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
            self.saves += 1
            own = f"{f}.{rank}" if rank and isinstance(f, (str, Path)) else f
            real(obj, own, *args, **kwargs)

        steps = register_optimizer_step_post_hook(
            lambda *_: self.weights_after_step.append(copy_weights(self._model))
        )
        torch.save = watched
        try:
            yield
        finally:
            torch.save = real
            steps.remove()


def _load_checkpoint(path: Path, seed: int) -> torch.Tensor | str:
    """Load a checkpoint into a fresh model, as a process without a process group would."""
    if not path.exists():
        return "there is no file"
    model = classifier_with_dropout(seed)
    try:
        model.load_state_dict(torch.load(path))
    except Exception as error:  # show the learner any error that the file causes
        # Torch lists the names that do not match on separate lines
        said = " ".join(str(error).split())
        return f"{type(error).__name__}: {said[:240]}"
    return copy_weights(model)
