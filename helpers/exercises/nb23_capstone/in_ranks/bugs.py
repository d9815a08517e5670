"""23.3: train a small language model with experts, and record the script's actions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.overrides import TorchFunctionMode

from helpers.exercises.nb23_capstone.in_ranks.whole import whole
from helpers.ranks.cells import is_learner_file

VOCABULARY, HIDDEN, MLP = 8, 8, 16
TABLES_PLAN = {
    "table": RowwiseParallel(input_layouts=Replicate()),
    "head": ColwiseParallel(output_layouts=Replicate()),
}
BLOCK_PLAN = {"up": ColwiseParallel(), "down": RowwiseParallel()}


class _GatherTokens(torch.autograd.Function):
    """Gather the tokens of all ranks of a group; in backward, sum the gradients and scatter them."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, group: Any) -> torch.Tensor:
        ctx.group = group
        gathered = x.new_empty(dist.get_world_size(group) * len(x), *x.shape[1:])
        dist.all_gather_single(gathered, x.contiguous(), group=group)
        return gathered

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        return _ScatterSums.apply(grads[0], ctx.group), None  # type: ignore[no-untyped-call]


class _ScatterSums(torch.autograd.Function):
    """Sum over a group and keep this rank's rows; in backward, gather."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, group: Any) -> torch.Tensor:
        ctx.group = group
        own = x.new_empty(len(x) // dist.get_world_size(group), *x.shape[1:])
        dist.reduce_scatter_single(own, x.contiguous(), group=group)
        return own

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        return _GatherTokens.apply(grads[0], ctx.group), None  # type: ignore[no-untyped-call]


class Experts(nn.Module):
    """One matrix for each expert. With a group, each rank holds one matrix, and tokens are exchanged."""

    def __init__(self, count: int, group: Any, own: int) -> None:
        super().__init__()
        weight = torch.randn(count, HIDDEN, HIDDEN) / HIDDEN**0.5
        self.first, self.group = 0 if group is None else own, group
        self.weight = nn.Parameter(weight if group is None else weight[own : own + 1].clone())

    def forward(self, x: torch.Tensor, choice: torch.Tensor) -> torch.Tensor:
        gather: Any = _GatherTokens.apply
        scatter: Any = _ScatterSums.apply
        if self.group is not None:
            x, choice = gather(x, self.group), gather(choice, self.group)
        chosen = [(choice == self.first + k)[:, None] for k in range(len(self.weight))]
        out = torch.stack([(x @ w) * c for w, c in zip(self.weight, chosen, strict=True)]).sum(0)
        return out if self.group is None else scatter(out, self.group)


class ExpertBlock(nn.Module):
    """An MLP and a mixture of experts, each with a residual: (tokens, HIDDEN)."""

    def __init__(self, count: int, group: Any, own: int) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(HIDDEN)
        self.up, self.down = nn.Linear(HIDDEN, MLP, bias=False), nn.Linear(MLP, HIDDEN, bias=False)
        self.router = nn.Linear(HIDDEN, count, bias=False)
        self.experts = Experts(count, group, own)
        self.choices: list[list[int]] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.down(F.silu(self.up(self.norm(x))))
        scores = self.router(x).sigmoid()
        # a random number for each token and expert, so that all experts get tokens
        choice = (scores + torch.rand(scores.shape)).argmax(1)
        self.choices.append(choice.tolist())
        return x + scores.gather(1, choice[:, None]) * self.experts(x, choice)  # type: ignore[no-any-return]


class ExpertModel(nn.Module):
    """Maps tokens (batch, tokens) to scores (batch * tokens, VOCABULARY). `head` and table are tied."""

    def __init__(self, seed: int, count: int, group: Any = None, own: int = 0) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.table = nn.Embedding(VOCABULARY, HIDDEN)
            self.blocks = nn.ModuleList(ExpertBlock(count, group, own) for _ in range(2))
            self.norm = nn.RMSNorm(HIDDEN)
            self.head = nn.Linear(HIDDEN, VOCABULARY, bias=False)
        self.head.weight = self.table.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.table(tokens).flatten(0, 1)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))  # type: ignore[no-any-return]


def run_bugs(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    seed: int,
    sizes: tuple[int, int],
    windows: torch.Tensor,
    settings: tuple[Any, ...],
    stop: tuple[int, int],
) -> dict[str, Any]:
    """Call the answer to train a model, and record its actions.

    stop: the rank on which, and the step at which, `interrupted` returns True.
    """
    dtype = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        mesh = init_device_mesh("cpu", sizes, mesh_dim_names=("data", "tensor"))
        data = mesh["data"]
        model = ExpertModel(seed, sizes[0], data.get_group(), data.get_local_rank())
        recorder = _Recorder(model, windows, seed, data.get_local_rank())
        with recorder.record():
            made = answer(
                rank,
                world_size,
                mesh,
                model,
                windows,
                torch.device("cpu"),
                *settings,
                lambda step: (rank, step) == stop,
            )
        return {"made": made, **recorder.found(model)}
    finally:
        torch.set_default_dtype(dtype)


class _Recorder:
    """Records windows, routes, gradients, weights, and tensors created without a device."""

    def __init__(self, model: ExpertModel, windows: torch.Tensor, seed: int, own: int) -> None:
        self.model, self._seed, self._own = model, seed, own
        self.learned: list[list[int]] = []
        self.grads: list[dict[str, torch.Tensor]] = []
        self.weights: list[dict[str, torch.Tensor]] = []
        self.hosted: list[str] = []
        self.blocks = list(model.blocks)
        self._number = {tuple(row.tolist()[:-1]): i for i, row in enumerate(windows)}
        model.register_forward_pre_hook(self._forward)

    def _forward(self, model: nn.Module, given: tuple[Any, ...]) -> None:
        # a DataLoader draws a number as well, so the routers' numbers begin here
        torch.manual_seed(router_seed(self._seed, self._own, len(self.learned)))
        self.learned.append([self._number.get(tuple(row.tolist()), -1) for row in given[0]])

    def _named(self, gradient: bool) -> dict[str, torch.Tensor]:
        named = {}
        for name, p in self.model.named_parameters():
            value = p.grad if gradient else p
            if value is None:
                continue
            named[plain_name(name)] = whole(value).detach().clone()
        return named

    @contextmanager
    def record(self) -> Iterator[None]:
        hooks = (
            register_optimizer_step_pre_hook(lambda *_: self.grads.append(self._named(True))),
            register_optimizer_step_post_hook(lambda *_: self.weights.append(self._named(False))),
        )
        watch = _DeviceWatch(self.hosted)
        try:
            with watch.watch_calls(), watch:
                yield
        finally:
            for hook in hooks:
                hook.remove()

    def found(self, model: ExpertModel) -> dict[str, Any]:
        return {
            "learned": self.learned,
            "grads": self.grads,
            "weights": self.weights,
            "hosted": self.hosted[:1],
            "tied": model.head.weight is model.table.weight,
            "choices": [block.choices for block in self.blocks],
        }


def router_seed(seed: int, coordinate: int, forward: int) -> int:
    """Return the seed of the random numbers drawn by routers in one forward of a data coordinate."""
    return 1000 * seed + 100 * coordinate + forward


def plain_name(name: str) -> str:
    return name.replace("_checkpoint_wrapped_module.", "")


_FACTORIES = frozenset(
    {torch.tensor, torch.zeros, torch.ones, torch.full, torch.empty, torch.as_tensor, torch.arange}
)
_CALLS = (
    "all_reduce",
    "reduce",
    "broadcast",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_single",
)


class _DeviceWatch(TorchFunctionMode):
    """Records tensors that the answer created without `device` and passed to a collective.

    On a machine with GPUs, such a tensor is in the CPU's memory, so NCCL refuses it.
    """

    def __init__(self, noted: list[str]) -> None:
        super().__init__()
        self._noted = noted
        self._hosted: dict[int, torch.Tensor] = {}  # keeps them alive, so that no id is used twice

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if not isinstance(result, torch.Tensor) or result.numel() > 4:
            return result
        if func in _FACTORIES:
            source = args[0] if args else None
            if (kwargs or {}).get("device") is None and not isinstance(source, torch.Tensor):
                self._hosted[id(result)] = result
        elif func in (torch.Tensor.to, torch.Tensor.cuda):
            self._hosted.pop(id(result), None)
        else:
            sources = [a for a in args if isinstance(a, torch.Tensor)]
            if sources and all(id(source) in self._hosted for source in sources):
                self._hosted[id(result)] = result
        return result

    @contextmanager
    def watch_calls(self) -> Iterator[None]:
        """Watch the calls of `dist` in the answer's lines."""
        real = {name: getattr(dist, name) for name in _CALLS if hasattr(dist, name)}

        def watched(name: str) -> Callable[..., Any]:
            def call(*args: Any, **kwargs: Any) -> Any:
                frame = sys._getframe(1)
                if is_learner_file(frame.f_code.co_filename):
                    for value in (*args, *kwargs.values()):
                        if id(value) in self._hosted:
                            self._noted.append(f"{name} in line {frame.f_lineno}")
                return real[name](*args, **kwargs)

            return call

        for name in real:
            setattr(dist, name, watched(name))
        try:
            yield
        finally:
            for name, function in real.items():
                setattr(dist, name, function)
