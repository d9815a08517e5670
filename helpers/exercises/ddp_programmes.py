"""What the ranks run around an answer of notebook 09: a model, a wrapper, and who looks on.

Each gives back plain values: gradients by name, weights after each step, buffers, what was counted.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from helpers.exercises.ddp_models import Route, assorted, buffers, loss_of, state
from helpers.exercises.lend import lend
from helpers.exercises.sgd_models import classifier, grads, weights
from helpers.ranks.inside import span


def broadcast_state(
    answer: Callable[..., Any], rank: int, world_size: int, src: int, seed: int, double: bool
) -> dict[str, Any]:
    """Let the answer make the models of all ranks equal; give what this rank's then holds."""
    model = assorted(seed + rank, True, torch.float64 if double else torch.float32)
    before = [*model.parameters(), *model.buffers()]
    trained = [p.requires_grad for p in model.parameters()]
    views = [tensor.detach() for tensor in before]  # they keep the memory, so no other can be there
    answer(model, src)
    now = [*model.parameters(), *model.buffers()]
    return {
        "state": state(model),
        "same tensors": len(now) == len(before) and all(map(operator.is_, now, before)),
        "same memory": all(
            t.data_ptr() == v.data_ptr() for t, v in zip(before, views, strict=True)
        ),
        "trained as before": trained == [p.requires_grad for p in model.parameters()],
    }


def train_wrapped(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    words: torch.Tensor,
    route: Route,
    seed: int,
    spare: bool,
    lr: float,
    momentum: float,
    *more: Any,
) -> dict[str, Any]:
    """Train a model, other on each rank, in the answer's wrapper; one row of words is one step."""
    lend(answer, "broadcast_module", _broadcast)
    model = assorted(seed + rank, spare)
    ddp = answer(model, *more)
    start = state(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum)
    first: dict[str, Any] = {}
    after = []
    for row in words:
        optimizer.zero_grad()
        with span("forward"):
            loss = loss_of(ddp, row, route)
        with span("backward"):
            loss.backward()
        ddp.finish()
        first = first or grads(model)
        optimizer.step()
        after.append(weights(model))
    return {"start": start, "grads": first, "weights": after, "buffers": buffers(model)}


def accumulate_unsynchronised(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    steps: list[list[tuple[torch.Tensor, torch.Tensor]]],
    seed: int,
) -> dict[str, Any]:
    """Accumulate under the answer's context manager, and try it in unusual places."""
    ddp = DistributedDataParallel(classifier(seed))
    after = []
    with _without(DistributedDataParallel, "no_sync", "ddp.no_sync"):
        for *most, (x, y) in steps:
            ddp.zero_grad()
            with answer(ddp):
                for mx, my in most:
                    (cross_entropy(ddp(mx), my) / (len(most) + 1)).backward()
            (cross_entropy(ddp(x), y) / (len(most) + 1)).backward()
            after.append(grads(ddp.module))
        return {"grads": after, **_unusual(answer, ddp)}


def _unusual(answer: Callable[..., Any], ddp: DistributedDataParallel) -> dict[str, Any]:
    """Tell what the switch says within nested blocks, and after one that an exception has left."""
    ddp.require_backward_grad_sync = True
    with answer(ddp):
        with answer(ddp):
            inner = ddp.require_backward_grad_sync
        nested = ddp.require_backward_grad_sync
    behind = ddp.require_backward_grad_sync
    ddp.require_backward_grad_sync, swallowed = True, True
    try:
        with answer(ddp):
            raise _Interrupted
    except _Interrupted:
        swallowed = False
    failed = ddp.require_backward_grad_sync
    found = {"inner": inner, "nested": nested, "behind": behind}
    return {**found, "failed": failed, "swallowed": swallowed}


def search_graph(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    words: torch.Tensor,
    route: Route,
    seed: int,
    doublings: int,
    detached: bool,
) -> dict[str, Any]:
    """Let the answer look at an output's graph; tell what it found and what it left behind."""
    model = assorted(seed, True)
    output = model(words, route)
    for _ in range(doublings):
        output = (output + output) / 2
    walked: list[int] = []
    if detached:
        output = output.detach()
    else:
        output.register_hook(lambda grad: walked.append(1))
    found = answer(output, model)
    backwards = len(walked)
    left = any(p.grad is not None for p in model.parameters())
    return {"unused": found, "backwards": backwards, "gradients left": left}


def compress(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    x: torch.Tensor,
    y: torch.Tensor,
    seed: int,
    scale: float,
) -> dict[str, Any]:
    """Run two backwards of torch's own DDP with the answer as its hook, the second in two buckets."""
    # else all gradients of so small a model are one bucket
    dist._DEFAULT_FIRST_BUCKET_BYTES = 1  # type: ignore[attr-defined]
    ddp = DistributedDataParallel(classifier(seed).to(x.dtype), bucket_cap_mb=0.001)
    ddp.register_comm_hook(None, _checked(answer))
    after = []
    with _without(default_hooks, "_compress_hook", "torch's fp16_compress_hook"):
        for _ in range(2):
            ddp.zero_grad()
            loss = scale * cross_entropy(ddp(x), y)
            with span("backward"):
                loss.backward()
            after.append(grads(ddp.module))
    return {"grads": after}


def _checked(answer: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse what is no Future: DDP, given None, reads memory that is not its own."""

    def hook(state: Any, bucket: Any) -> Any:
        with _unwaited():
            future = answer(state, bucket)
        if not isinstance(future, torch._C.Future):  # a Work's own is of this base class
            raise TypeError(
                f"compress_gradients returns {type(future).__name__}; DDP wants a torch.futures.Future. "
                "work.get_future().then(...) gives one."
            )
        return future

    hook.__annotations__.clear()  # DDP compares them with types, and here they are strings
    return hook


@contextmanager
def _unwaited() -> Iterator[None]:
    """Refuse to wait for a future that is not done: backward would stand still."""
    real = torch._C.Future.wait

    def wait(future: Any) -> Any:
        if not future.done():
            raise NotAllowed(
                "the hook waits for its future, and backward stands still. Return "
                "work.get_future().then(...): DDP waits for it at the end."
            )
        return real(future)

    torch._C.Future.wait = wait  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        torch._C.Future.wait = real  # type: ignore[method-assign]


class _Interrupted(Exception):
    """Raised inside a block to see what the context manager does."""


@contextmanager
def _without(owner: Any, name: str, called: str) -> Iterator[None]:
    """Take away what the answer is to replace; `called` is its name for the learner."""
    real = getattr(owner, name)

    def refused(*args: Any, **kwargs: Any) -> Any:
        raise NotAllowed(f"{called} is what you are to write: do without it.")

    setattr(owner, name, refused)
    try:
        yield
    finally:
        setattr(owner, name, real)


class NotAllowed(RuntimeError):
    """The answer called the very thing that it is to replace."""


def _broadcast(module: nn.Module, src: int = 0) -> None:
    for tensor in [*module.parameters(), *module.buffers()]:
        dist.broadcast(tensor.detach(), src)
