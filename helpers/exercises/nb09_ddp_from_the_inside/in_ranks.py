"""Run answers of notebook 09 inside the ranks: build a model and a wrapper, and watch them.

Each function returns a dict from names to plain values. A string describes a problem that the values do not
show; "" means that there is none.
"""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import nn
from torch.autograd import grad
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from helpers.checks import adversarial
from helpers.exercises.shared.in_ranks.classifier import (
    Rule,
    Weights,
    build_classifier,
    copy_laid_out,
    flat,
    grads_of,
)
from helpers.exercises.shared.in_ranks.lend import define_if_missing
from helpers.ranks.rank_context import span

Route = Sequence[str]
"""The layers that an input passes, in order."""
HOOKED_TWICE, REDUCED_TWICE = "hooked twice", "reduced twice"
"""Names of spans recorded after a backward that reduced a gradient again before its first reduction ended.

The first name means that the parameter has several hooks, the second that it has one.
"""


def run_broadcast(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    entries: Sequence[tuple[str, torch.Tensor, str]],
    tied: bool,
    src: int,
) -> dict[str, Any]:
    """Call the answer to make all ranks' modules equal, and return the contents of this rank's module."""
    module = nn.Module()
    inner = nn.Module()
    module.add_module("inner", inner)
    # Create them in a different order on each rank, so that iterating over a Python set of them also differs.
    made = {}
    for name, value, kind in entries[:: 1 - 2 * (rank % 2)]:
        made[name] = (
            nn.Parameter(copy_laid_out(value), requires_grad=kind == "trained")
            if kind in {"trained", "frozen"}
            else copy_laid_out(value)
        )
    for name, _, kind in entries:
        owner, _, own_name = name.rpartition(".")
        owner = inner if owner else module  # type: ignore[assignment]
        if kind in {"trained", "frozen"}:
            owner.register_parameter(own_name, made[name])  # type: ignore[attr-defined]
        else:
            owner.register_buffer(own_name, made[name], persistent=kind == "buffer")  # type: ignore[attr-defined]
    if tied:
        module.register_parameter("twin", next(inner.parameters()))
    before = [*module.parameters(), *module.buffers()]
    trained = [p.requires_grad for p in before]
    # Keep the tensors, so that no address is used twice
    views = [tensor.detach() for tensor in before]
    answer(*([module, src] if src else [module]))  # the default of src is 0
    now = [*module.parameters(), *module.buffers()]
    same = len(now) == len(before) and all(map(operator.is_, now, before))
    there = all(t.data_ptr() == v.data_ptr() for t, v in zip(before, views, strict=True))
    found = {name: _copy_tensor(module, name) for name, *_ in entries}
    kept = trained == [t.requires_grad for t in now]
    return {
        "tensors": "" if same else "the module's tensors were replaced by new ones",
        **found,
        "memory": "" if there else "a tensor's memory was replaced",
        "requires_grad": "" if kept else "requires_grad has changed",
    }


def _copy_tensor(module: nn.Module, name: str) -> Any:
    tensor = operator.attrgetter(name)(module)
    return tensor.detach().clone() if isinstance(tensor, torch.Tensor) else None


# --- training in a wrapper ------------------------------------------------------------------------


class MixedModel(nn.Module):
    """A model with all kinds of layers that a wrapper might handle wrongly.

    `table` and `out` may share one weight. `frozen` is not trained. `spare`, which only some models have, is
    also not trained, because no route uses it. Forward changes the buffers of `norm`, and `state_dict()`
    leaves out the buffer `scale`.
    """

    scale: torch.Tensor

    def __init__(self, tied: bool, spare: bool) -> None:
        super().__init__()
        self.table, self.frozen = nn.Embedding(6, 4), nn.Linear(4, 4).requires_grad_(False)
        self.left, self.right = nn.Linear(4, 4), nn.Linear(4, 4)
        self.spare = nn.Linear(4, 1).requires_grad_(spare)
        self.out = nn.Linear(4, 6, bias=False)
        if tied:
            self.out.weight = self.table.weight
        self.norm = nn.BatchNorm1d(4)
        for name in ("running_mean", "running_var"):
            nn.init.uniform_(self.norm.get_buffer(name), 0.5, 1.5)
        self.norm.get_buffer("num_batches_tracked").random_(100)
        self.register_buffer("scale", 0.5 + torch.rand(4), persistent=False)

    def forward(self, words: torch.Tensor, route: Route) -> torch.Tensor:
        hidden = self.norm(torch.tanh(self.frozen(self.table(words)))) * self.scale
        for name in route:
            hidden = torch.tanh(getattr(self, name)(hidden))
        result: torch.Tensor = self.out(hidden)
        return result


def build_mixed_model(seed: int, tied: bool, spare: bool, use_float64: bool) -> MixedModel:
    """Build the model in float64, or in float32. All its values depend only on `seed`."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return MixedModel(tied, spare).to(torch.float64 if use_float64 else torch.float32)


def copy_state(model: nn.Module) -> dict[str, torch.Tensor]:
    """Return {name: copy} of all parameters and buffers. A tensor with several names is copied once."""
    named = [*model.named_parameters(), *model.named_buffers()]
    return {name: tensor.detach().clone() for name, tensor in named}


def compute_loss(model: Any, words: torch.Tensor, route: Route) -> Any:
    """Return the loss of predicting the words in reverse order."""
    return cross_entropy(model(words, route), words.flip(0))


class WrappedTraining(NamedTuple):
    """A rank's training: a model that differs between ranks, and for each step a row of words and a route.

    second: how a second wrapper is used, one of `SECOND_WRAPPERS`.
    """

    settings: tuple[int, bool, bool, bool]
    rule: Rule
    words: torch.Tensor
    routes: Sequence[Route]
    set_to_none: bool
    second: str


SECOND_WRAPPERS = ("none", "idle", "trained first", "trained last")
"""How a second module is wrapped and used.

An idle module is wrapped before the model and never trained. Other modules take all steps of the model. A
module trained first is also wrapped first, and a module trained last is wrapped last.
"""
TOGETHER = ("finished last", "finished first")
"""Further uses of a second wrapper, in which both modules run backward before either is finished."""


def build_second_module(seed: int, use_float64: bool) -> nn.Module:
    """Build the module for a second wrapper. Its parameters share names with the model's."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers = {"table": nn.Linear(2, 2), "out": nn.Linear(2, 2, bias=False)}
    return nn.Sequential(OrderedDict(layers)).to(torch.float64 if use_float64 else torch.float32)


def _compute_second_loss(module: Any, words: torch.Tensor) -> Any:
    x = words[:4].view(2, 2).to(next(module.parameters()).dtype) / 6
    return (module(x) - 1).square().mean()


def train_wrapped(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    training: WrappedTraining,
    *wrapper_args: Any,
) -> dict[str, Any]:
    """Train a model, and perhaps a second model, in the answer's wrapper. wrapper_args: further arguments."""
    settings, rule, words, routes, to_none, second = training
    define_if_missing(broadcast_module)
    model, other_model = (
        build_mixed_model(*settings),
        build_second_module(settings[0], settings[-1]),
    )
    is_first = second in ("idle", "trained first")
    other: Any = answer(other_model, *wrapper_args) if is_first else None
    ddp = answer(model, *wrapper_args)
    if second != "none" and not is_first:
        other = answer(other_model, *wrapper_args)
    found: dict[str, Any] = {f"after __init__, {n}": t for n, t in copy_state(model).items()}
    trained = [model] if second in ("none", "idle") else [model, other_model]
    optimizers = [torch.optim.SGD(module.parameters(), rule[0], rule[1]) for module in trained]
    problems: list[str] = []

    # these functions keep the second wrapper alive until the end, because its hooks must exist
    def run_backward(of_model: bool, row: torch.Tensor, route: Route) -> None:
        with span("forward"):
            loss = compute_loss(ddp, row, route) if of_model else _compute_second_loss(other, row)
        module = model if of_model else other_model
        with span("backward"), _watch_in_flight(problems), _watch_repeats(module) as repeats:
            loss.backward()
        for name in repeats:
            with span(name):
                pass

    def finish(of_model: bool) -> None:
        with _watch_in_flight(problems):
            (ddp if of_model else other).finish()

    order = [True] if len(trained) == 1 else [second != "trained first", second == "trained first"]
    for step, (row, route) in enumerate(zip(words, routes, strict=True), 1):
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=to_none)
        for of_model in order:
            run_backward(of_model, row, route)
            if second not in TOGETHER:
                finish(of_model)
        if second in TOGETHER:
            for of_model in order if second == "finished last" else reversed(order):
                finish(of_model)
        if step == 1:
            found |= {f"gradient of {name}": g for name, g in grads_of(model).items()}
        for optimizer in optimizers:
            optimizer.step()
        found[f"weights after step {step}"] = flat(model)
        if len(trained) > 1:
            found[f"the second module's weights after step {step}"] = flat(other_model)
    ends = {f"{n} at the end": b.detach().clone() for n, b in model.named_buffers()}
    return {"in flight": "".join(problems[:1]), **found, **ends}


@contextmanager
def _watch_in_flight(problems: list[str]) -> Iterator[None]:
    """Record in `problems` any write to a tensor between its all_reduce and the wait()."""
    begin, end = adversarial._InFlightCall.__init__, adversarial._InFlightCall.end

    def record_versions(self: Any, *args: Any) -> None:
        begin(self, *args)
        self.versions = [own._version for own, _ in self.written_pairs]

    def compare_versions(self: Any) -> None:
        now = [own._version for own, _ in self.written_pairs]
        if not self._is_finished and getattr(self, "versions", now) != now:
            problems.append("a tensor is changed between its all_reduce and the wait() for it")
        end(self)

    adversarial._InFlightCall.__init__ = record_versions  # type: ignore[method-assign, assignment]
    adversarial._InFlightCall.end = compare_versions  # type: ignore[method-assign]
    try:
        yield
    finally:
        adversarial._InFlightCall.__init__ = begin  # type: ignore[method-assign]
        adversarial._InFlightCall.end = end  # type: ignore[method-assign]


@contextmanager
def _watch_repeats(module: nn.Module) -> Iterator[list[str]]:
    """Yield a list. If a gradient is reduced again while in flight, the name of a span is added to it."""
    begin, calls, repeats = adversarial._InFlightCall.__init__, list[Any](), list[str]()

    def compare_with_open_calls(self: Any, *args: Any) -> None:
        begin(self, *args)
        open_tensors = [
            own for call in calls if not call._is_finished for own, _ in call.written_pairs
        ]
        calls.append(self)
        for parameter in module.parameters():
            grad_is = [own is parameter.grad for own, _ in self.written_pairs]
            if any(grad_is) and any(own is parameter.grad for own in open_tensors) and not repeats:
                several = len(parameter._post_accumulate_grad_hooks or ()) > 1
                repeats.append(HOOKED_TWICE if several else REDUCED_TWICE)

    adversarial._InFlightCall.__init__ = compare_with_open_calls  # type: ignore[method-assign, assignment]
    try:
        yield repeats
    finally:
        adversarial._InFlightCall.__init__ = begin  # type: ignore[method-assign]


def broadcast_module(module: nn.Module, src: int = 0) -> None:
    """Make parameters and buffers on all ranks equal to those of rank src, in place."""
    for tensor in [*module.parameters(), *module.buffers()]:
        dist.broadcast(tensor.detach(), src)


# --- accumulation without synchronizing -----------------------------------------------------------


def run_accumulation(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    weights: Weights,
    steps: Sequence[Sequence[tuple[torch.Tensor, torch.Tensor]]],
) -> dict[str, Any]:
    """Accumulate gradients under the answer's context manager, and try it nested and interrupted."""
    ddp = DistributedDataParallel(build_classifier(weights))
    found: dict[str, Any] = {}
    with _disable(DistributedDataParallel, "no_sync", "ddp.no_sync"):
        for number, (*most, (x, y)) in enumerate(steps, 1):
            ddp.zero_grad()
            with answer(ddp):
                for mx, my in most:
                    (cross_entropy(ddp(mx), my) / len(steps[0])).backward()
            (cross_entropy(ddp(x), y) / len(steps[0])).backward()
            found |= {f"step {number}: {name}": g for name, g in grads_of(ddp.module).items()}
        seen = _try_flag(answer, ddp)
        return {"off": seen.pop("off"), **found, **seen}


def _try_flag(answer: Callable[..., Any], ddp: Any) -> dict[str, str]:
    """Return the problems with the flag within nested blocks and after exceptions, by name."""
    seen = {}
    ddp.require_backward_grad_sync = True
    with answer(ddp):
        seen["off"] = ddp.require_backward_grad_sync is False
    ddp.require_backward_grad_sync = True
    with answer(ddp):
        with answer(ddp):
            seen["inner"] = ddp.require_backward_grad_sync is False
        seen["nested"] = ddp.require_backward_grad_sync is False
    seen["behind"] = ddp.require_backward_grad_sync is True
    for before, raised in (
        (True, _Interrupted()),
        (False, _Interrupted()),
        (True, KeyboardInterrupt()),
    ):
        ddp.require_backward_grad_sync = before
        came: BaseException | None = None
        try:
            with answer(ddp):
                raise raised
        except BaseException as error:
            came = error
        seen["comes out"] = seen.get("comes out", True) and came is raised
        key = "interrupted" if isinstance(raised, KeyboardInterrupt) else "restored"
        seen[key] = seen.get(key, True) and ddp.require_backward_grad_sync is before
    return {name: "" if seen[name] else words for name, words in _FLAG_PROBLEMS.items()}


_FLAG_PROBLEMS = {
    "off": "the flag isn't False inside the block",
    "comes out": "an exception raised inside the block isn't passed on",
    "inner": "the flag isn't False inside a nested block",
    "nested": "the flag is no longer False in the outer block after an inner block",
    "behind": "the flag isn't True again after two nested blocks",
    "restored": "the flag isn't restored after an exception inside the block",
    "interrupted": "the flag isn't restored after a KeyboardInterrupt inside the block",
}


# --- dependencies of an output --------------------------------------------------------------------


class Layers(nn.Module):
    """Layers that a route may use or leave out: a tied weight, frozen layers, and an unused layer."""

    def __init__(self, width: int, frozen: Sequence[str], tied: bool) -> None:
        super().__init__()
        self.table = nn.Embedding(6, width)
        self.left, self.right = nn.Linear(width, width), nn.Linear(width, width)
        self.norm, self.spare = nn.LayerNorm(width), nn.Linear(width, 1)
        self.out = nn.Linear(width, 6, bias=False)
        if tied:
            self.out.weight = self.table.weight
        for name in frozen:
            getattr(self, name).requires_grad_(False)

    def forward(self, words: torch.Tensor, route: Route) -> torch.Tensor:
        hidden = self.table(words)
        for name in route:
            hidden = torch.tanh(getattr(self, name)(hidden))
        result: torch.Tensor = self.out(hidden)
        return result


# The beginning of torch's error if backward runs a second time through a graph.
_SECOND_BACKWARD_ERROR = "Trying to backward through the graph a second time"


def run_search(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    settings: tuple[int, Sequence[str], bool],
    route: Route,
    depth: int,
    kind: str,
) -> dict[str, Any]:
    """Call the answer to search an output's graph; return its result and whether it changed anything.

    kind: the origin of the output. "detached" has no graph, and "table only" is computed from the table's
    weight.
    """
    model = Layers(*settings)
    # compare identities, because two parameters may have equal values
    model.right.load_state_dict(model.left.state_dict())
    output = model(torch.arange(5), [*route] * depth)
    if kind == "table only":
        output = model.table.weight.square().sum()
    for _ in range(60 if kind == "2^60 paths" else 0):
        output = (output + output) / 2
    if kind == "detached":
        output = output.detach()
    elif output.requires_grad:
        # Backward frees its saved tensors in C++, where an answer cannot prevent it. The graph can still be
        # searched, but any further backward fails. So another backward shows whether the answer ran backward.
        trained = [p for p in model.parameters() if p.requires_grad]
        grad(output.sum(), trained, allow_unused=True)
    stale = torch.ones_like(model.spare.weight)
    model.spare.weight.grad = stale if kind == "old gradients" else None
    left = [p.grad for p in model.parameters()]
    ran, found = "", None
    try:
        found = answer(output, model)
    except RuntimeError as error:
        if _SECOND_BACKWARD_ERROR not in str(error):
            raise
        ran = "your function ran backward; walk through the graph instead"
    kept = all(p.grad is g for p, g in zip(model.parameters(), left, strict=True))
    return {
        "backward": ran,
        "gradients": "" if kept else "`p.grad` has changed",
        "names": found,
    }


# --- communication hooks --------------------------------------------------------------------------


def run_compression(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    weights: Weights,
    use_float64: bool,
    grads: Sequence[torch.Tensor],
) -> dict[str, Any]:
    """Run backward twice in torch's DDP with the answer as its hook, the second time with more buckets.

    grads: the gradient produced by backward on this rank for each parameter. use_float64: use float64.
    """
    # otherwise all gradients of such a small model would share one bucket
    dist._DEFAULT_FIRST_BUCKET_BYTES = 1  # type: ignore[attr-defined]
    model = FixedGradients([w.to(torch.float64 if use_float64 else torch.float32) for w in weights])
    ddp = DistributedDataParallel(model, bucket_cap_mb=1e-6)
    found: dict[str, Any] = {}
    waits: list[str] = []
    ddp.register_comm_hook(None, _check_hook(answer, waits))
    with _disable(default_hooks, "_compress_hook", "torch's fp16_compress_hook"):
        for number in (1, 2):
            ddp.zero_grad()
            loss = ddp(grads)
            with span("backward"):
                loss.backward()
            found |= {f"step {number}: {name}": g for name, g in grads_of(model).items()}
    return {"waits": "".join(waits[:1]), **found}


class FixedGradients(nn.Module):
    """A model whose gradients are the given tensors."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        for i, weight in enumerate(weights):
            self.register_parameter(f"p{i}", nn.Parameter(weight))

    def forward(self, grads: Sequence[torch.Tensor]) -> Any:
        pairs = zip(self.parameters(), grads, strict=True)
        return sum((p * g.to(p.dtype)).sum() for p, g in pairs)


def _check_hook(answer: Callable[..., Any], waits: list[str]) -> Callable[..., Any]:
    """Raise an error if the hook does not return a Future, because DDP would then read invalid memory."""

    def hook(state: Any, bucket: Any) -> Any:
        with _forbid_waiting(waits):
            future = answer(state, bucket)
        if not isinstance(future, torch._C.Future):  # the Future of a Work is of this base class
            raise TypeError(
                f"compress_gradients returns {type(future).__name__}, but DDP needs a "
                "torch.futures.Future. Return work.get_future().then(...)."
            )
        return future

    hook.__annotations__.clear()  # DDP compares annotations with types, and here they are strings
    return hook


@contextmanager
def _forbid_waiting(waits: list[str]) -> Iterator[None]:
    """Record the code that waits for a Work, and raise an error instead of waiting for an incomplete future.

    Waiting for such a future would block backward.
    """
    real, of_work = torch._C.Future.wait, adversarial._DeferredWork.wait

    def work_wait(work: Any, *args: Any) -> bool:
        waits.append("the hook calls wait(), which blocks backward")
        return of_work(work, *args)

    def wait(future: Any) -> Any:
        if not future.done():
            raise NotAllowed(
                "the hook waits for its future, which blocks backward. Return "
                "work.get_future().then(...): DDP waits for it at the end."
            )
        return real(future)

    adversarial._DeferredWork.wait = work_wait  # type: ignore[method-assign, assignment]
    torch._C.Future.wait = wait  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        adversarial._DeferredWork.wait = of_work  # type: ignore[method-assign]
        torch._C.Future.wait = real  # type: ignore[method-assign]


class _Interrupted(Exception):
    """Raised inside a block to test the context manager's handling."""


class NotAllowed(RuntimeError):
    """The answer called the function that it should replace."""


@contextmanager
def _disable(owner: Any, name: str, shown_name: str) -> Iterator[None]:
    """Disable the function that the answer should replace; `shown_name` is its name in the error."""
    real = getattr(owner, name)

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotAllowed(
            f"{shown_name} is disabled, because this exercise asks you to write it yourself."
        )

    setattr(owner, name, refuse)
    try:
        yield
    finally:
        setattr(owner, name, real)
