"""What the ranks run around an answer of notebook 15: a layer or block cut over ranks, there and back.

Each gives back plain values by name: the output, gradients, what the parameters hold. The spans
"forward" and "backward" let the rules tell which call belongs to which. A text tells what was seen that no
value shows; "" is right.
"""

from __future__ import annotations

import functools
import gc
import sys
import types
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import scaled_dot_product_attention, silu

from helpers.checks.held import storage_bytes
from helpers.exercises.nb03_nonblocking_p2p.in_ranks import kept_flights
from helpers.ranks.inside import span

_UNKNOWN_TO_AUTOGRAD = "an autograd kernel was not registered"
MULTIPLY = "multiply"
"""What the span of a product is called."""
_SMALL = 64
"""Bytes that a layer may keep beside its parts: a number or two."""


def run_layer(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    x: torch.Tensor,
    grad: torch.Tensor,
    trained: bool,
) -> dict[str, Any] | None:
    """Let the answer cut a dense layer, and run its own part there and back."""
    dense = _dense(weight, bias)
    before: list[weakref.ref[Any]] = [weakref.ref(dense), *map(weakref.ref, dense.parameters())]
    storages = {p.untyped_storage().data_ptr() for p in dense.parameters()}
    layer = answer(dense)
    del dense
    if not isinstance(layer, nn.Module):
        raise TypeError(f"{type(layer).__name__} is not a torch.nn.Module")
    x = x.clone().requires_grad_(trained)
    with _watched() as seen:
        found = there_and_back(lambda: layer(x), grad)
    if found.get("kind of output") == "NoneType":
        return None
    return {
        **{name: _parameter(layer, name) for name in ("weight", "bias")},
        "memory": _kept(layer, before, storages),
        **_in_words(found, seen),
        "gradient of x": _copy(x.grad),
        **{f"gradient of {n}": _grad(getattr(layer, n, None)) for n in ("weight", "bias")},
    }


def run_block(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    grad: torch.Tensor,
    tensors: Mapping[str, torch.Tensor],
    *more: Any,
) -> dict[str, Any] | None:
    """Call the answer with the input and this rank's parts of the weights, there and back."""
    lend()
    given = {name: tensor.clone().requires_grad_() for name, tensor in tensors.items()}
    with _watched() as seen:
        found = there_and_back(lambda: answer(*given.values(), *more), grad)
    if found.get("kind of output") == "NoneType":
        return None
    return {
        **_in_words(found, seen),
        **{f"gradient of {name}": _grad(tensor) for name, tensor in given.items()},
        "pair": _wrong_pair(rank, world_size),
    }


def run_sequence(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    grad: torch.Tensor,
    tensors: Mapping[str, torch.Tensor],
    mask: torch.Tensor,
) -> dict[str, Any] | None:
    """Call the answer with this rank's tokens, there and back; count what autograd keeps of all tokens."""
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        plain = getattr(tensor, "elem", tensor)  # of a functional collective's result
        address = plain.untyped_storage().data_ptr()
        kept[address] = max(kept.get(address, 0), plain.nbytes)
        return tensor

    def watched(*given: torch.Tensor) -> Any:
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            return answer(*given)

    found = run_block(watched, rank, world_size, grad, tensors, mask)
    if found is None:
        return None
    # nothing else has as many bytes: `case` sees to that
    whole = list(kept.values()).count(world_size * grad.nbytes)
    many = f"for backward autograd keeps {whole} tensors of all ranks' tokens"
    return found | {"held": many if whole > 1 else ""}


def run_product(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    x: torch.Tensor,
    weight: torch.Tensor,
) -> Any:
    """Hand the answer a `multiply` that records a span of this name."""

    def multiply(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        with span(MULTIPLY):
            return a @ b

    before = x.clone()
    with kept_flights():
        found = answer(rank, world_size, x, weight, multiply)
    if not torch.equal(x, before):
        raise ValueError("the values of `x` have changed: leave it as it is")
    return found


def run_loss(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    logits: torch.Tensor,
    target: torch.Tensor,
    first: int,
) -> dict[str, Any] | None:
    """Let the answer compute a loss from this rank's logits, and run backward."""
    lend()
    logits = logits.clone().requires_grad_()
    before = logits.detach().clone()
    with _watched(allowed=1) as seen:
        found = there_and_back(lambda: answer(logits, target.clone(), first), None)
    if found.get("kind of output") == "NoneType":
        return None
    kept = torch.equal(before, logits.detach())
    return {
        **_in_words(found, seen),
        "logits": "" if kept else "the logits that were given have changed",
        "gradient of logits": _grad(logits),
        "pair": _wrong_pair(rank, world_size),
    }


def run_parallelized(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    sizes: tuple[int, ...],
    dimension: str,
    state: Mapping[str, torch.Tensor],
    heads: int,
    x: torch.Tensor,
    grad: torch.Tensor,
) -> dict[str, Any]:
    """Let the answer cut a block over a mesh; tell what each rank holds and computes."""
    block = Block.of(state, heads)
    model = answer(block, _mesh(sizes)[dimension])
    if not isinstance(model, nn.Module):
        raise TypeError(f"with_dtensor returns {type(model).__name__}, not a torch.nn.Module")
    x = x.clone().requires_grad_()
    shapes = {
        f"shape of {name}": str(tuple(_local(p).shape)) for name, p in model.named_parameters()
    }
    found = there_and_back(lambda: _whole(model(x)), grad)
    grads = {
        f"gradient of {name}": None if p.grad is None else _whole(p.grad).detach().clone()
        for name, p in model.named_parameters()
    }
    same = "" if model is block else "the model that was returned is not the one that was given"
    return {"block": same, **shapes, **_in_words(found), "gradient of x": _copy(x.grad), **grads}


def there_and_back(forward: Callable[[], Any], grad: torch.Tensor | None) -> dict[str, Any]:
    """Run forward and backward in their spans; give the output and whether autograd warned."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with span("forward"):
            output = forward()
            if isinstance(output, torch.Tensor):
                kept = output.detach().clone()
        if not isinstance(output, torch.Tensor):
            return {"output": None, "kind of output": type(output).__name__}
        if grad is not None and output.shape != grad.shape:
            return {"output": kept}
        with span("backward"):
            output.backward(grad)
    warned = any(_UNKNOWN_TO_AUTOGRAD in str(each.message) for each in said)
    return {"output": kept, "autograd warned": warned}


def _in_words(found: Mapping[str, Any], seen: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Give what was found there and back, with texts in place of what is no tensor."""
    kind = found.get("kind of output")
    warned = "autograd warns that it cannot differentiate a call in forward"
    return {
        "autograd": warned if found.get("autograd warned") else "",
        **(seen or {}),
        "output": f"a {kind}, not a tensor" if kind else found["output"],
    }


# --- what was seen --------------------------------------------------------------------------------


@contextmanager
def _watched(allowed: int = 0) -> Iterator[dict[str, str]]:
    """Watch each all_reduce: does it write into what autograd keeps, is it within a function of autograd?

    allowed: how many calls in forward may be outside of functions.
    """
    group: Any = dist.ProcessGroup
    real, seen, outside = group.allreduce, {"in place": "", "outside": ""}, [0]

    @functools.wraps(real)
    def allreduce(own: Any, tensors: Any, *args: Any, **kwargs: Any) -> Any:
        name, given = _function_around(sys._getframe(1))
        mine = tensors if isinstance(tensors, (list, tuple)) else [tensors]
        if not name:
            outside[0] += 1
            if outside[0] > allowed:
                seen["outside"] = "a call in forward is not inside of an autograd function"
        elif _storages(mine) & _storages(given):
            seen["in place"] = f"{name} sums into the tensor that it was given"
        return real(own, tensors, *args, **kwargs)

    group.allreduce = allreduce
    try:
        yield seen
    finally:
        group.allreduce = real


def _function_around(frame: types.FrameType | None) -> tuple[str, tuple[Any, ...]]:
    """Name the function of autograd in which a frame is, and what that was given; "" if in none."""
    while frame is not None:
        code = frame.f_code
        if code.co_name == "apply" and code.co_filename == torch.autograd.function.__file__:
            known = frame.f_locals
            if "cls" in known:
                return f"{known['cls'].__name__}.forward", known["args"]
            return f"{known['self']._forward_cls.__name__}.backward", known["args"]
        if code is there_and_back.__code__:
            backward = "output" in frame.f_locals  # a hook may communicate there
            return ("a hook", ()) if backward else ("", ())
        frame = frame.f_back
    return "", ()


def _storages(values: Any) -> set[int]:
    return {v.untyped_storage().data_ptr() for v in values if isinstance(v, torch.Tensor)}


def _dense(weight: torch.Tensor, bias: torch.Tensor | None) -> nn.Linear:
    dense = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, dtype=weight.dtype)
    with torch.no_grad():
        dense.weight.copy_(weight)
        if bias is not None:
            dense.bias.copy_(bias)
    return dense


def _kept(layer: nn.Module, before: list[weakref.ref[Any]], storages: set[int]) -> str:
    """Say what a layer keeps beside its own parts, in words; "" if nothing."""
    own = [(n, p) for n, p in layer.named_parameters() if n in {"weight", "bias"}]
    for name, parameter in own:
        if parameter.untyped_storage().data_ptr() in storages:
            return f"its {name} shares memory with the dense layer's"
    if any(ref() is not None for ref in before):
        gc.collect()
    if any(ref() is not None for ref in before):
        return "the dense layer, or a tensor of it, is still in memory"
    parts = sum(p.numel() * p.element_size() for _, p in own)
    held = storage_bytes(_reached(layer))
    if held - parts > _SMALL:
        return f"the layer keeps {held:,} bytes; its own parts have {parts:,}"
    return ""


def _reached(layer: nn.Module) -> Iterator[torch.Tensor]:
    """Give all tensors that can be reached from a layer's attributes."""
    todo: list[Any] = [layer]
    seen: set[int] = set()
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, torch.Tensor):
            yield one
        elif isinstance(one, dict):
            todo += one.values()
        elif isinstance(one, (list, tuple, set)):
            todo += one
        elif isinstance(one, nn.Module):
            todo.append(vars(one))
        elif isinstance(one, types.FunctionType):
            todo += [cell.cell_contents for cell in one.__closure__ or ()]


def _parameter(layer: nn.Module, name: str) -> Any:
    """Copy a parameter, or say what stands in its place; None for None."""
    named = dict(layer.named_parameters())
    if name in named:
        return _copy(named[name])
    missing = (
        f"the layer has no attribute of this name; registered are {', '.join(named) or 'none'}"
    )
    value = getattr(layer, name, missing)
    return (
        f"a {type(value).__name__}, not a Parameter" if isinstance(value, torch.Tensor) else value
    )


def _copy(tensor: Any) -> torch.Tensor | None:
    return tensor.detach().clone() if isinstance(tensor, torch.Tensor) else None


def _grad(tensor: Any) -> torch.Tensor | None:
    return _copy(getattr(tensor, "grad", None))


def _local(tensor: torch.Tensor) -> torch.Tensor:
    local: torch.Tensor = getattr(tensor, "_local_tensor", tensor)
    return local


def _whole(value: Any) -> Any:
    """Give a DTensor's whole tensor, and wait for one that is still on its way."""
    if hasattr(value, "full_tensor"):
        return value.full_tensor()
    return value + 0 if type(value).__name__ == "AsyncCollectiveTensor" else value


# --- the pair -------------------------------------------------------------------------------------


class CopyToRanks(torch.autograd.Function):
    """Hand x on unchanged; add up its gradients over all ranks."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        total = grad.clone()
        dist.all_reduce(total)
        return total


class SumOverRanks(torch.autograd.Function):
    """Add up x over all ranks; hand its gradient on unchanged."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad


def lend() -> None:
    """Let the answer use right functions where its own CopyToRanks or SumOverRanks is a stub."""
    names = vars(sys.modules["__main__"])
    for right in (CopyToRanks, SumOverRanks):
        own = names.get(right.__name__, right)
        is_plain = isinstance(own, type) and issubclass(own, torch.autograd.Function)
        if is_plain and not getattr(own, "is_lent", False):
            names[right.__name__] = _with_help(own, right) if own is not right else right


def _with_help(own: Any, right: Any) -> Any:
    """Give the learner's own function, with the right one's lines where it is not written yet."""

    class Lent(own):  # type: ignore[misc]
        is_lent = True

        @staticmethod
        def forward(*args: Any) -> Any:
            try:
                return own.forward(*args)
            except NotImplementedError as error:
                return _unless_written(error, right.forward, None, args[-1])

    def backward(ctx: Any, *grads: Any) -> Any:
        try:
            return own.backward(ctx, *grads)
        except NotImplementedError as error:
            return _unless_written(error, right.backward, ctx, *grads)

    if "backward" in vars(own):
        Lent.backward = staticmethod(backward)
    Lent.__name__ = own.__name__
    return Lent


def _unless_written(error: NotImplementedError, right: Callable[..., Any], *args: Any) -> Any:
    """Call the right lines in place of a stub; any other NotImplementedError is torch's or theirs."""
    if str(error) and not str(error).startswith("Exercise "):
        raise error
    return right(*args)


def _wrong_pair(rank: int, world_size: int) -> str:
    """Name the first of the learner's own two functions that the answer uses and that is not right."""
    names = vars(sys.modules["__main__"])
    forward, backward = [torch.ones(2), torch.ones(2) * world_size], torch.ones(2)
    summed = world_size * (world_size + 1) / 2
    wanted = {"CopyToRanks": (forward[0], backward * summed), "SumOverRanks": (forward[1], None)}
    for name, (output, gradient) in wanted.items():
        if not getattr(names.get(name), "is_lent", False):
            continue
        x = torch.ones(2, requires_grad=True)
        y = names[name].apply(x)
        y.backward(backward * (rank + 1))
        gradient = backward * (rank + 1) if gradient is None else gradient
        if not torch.equal(y.detach(), output) or x.grad is None:
            return name
        if not torch.equal(x.grad, gradient):
            return name
    return ""


# --- the block ------------------------------------------------------------------------------------


class Attention(nn.Module):
    """Attention with q, k, v and o as Linear layers, as most model files have them."""

    def __init__(self, features: int, heads: int, biases: Mapping[str, bool]) -> None:
        super().__init__()
        self.head_size = features // heads
        self.q, self.k, self.v, self.o = (
            nn.Linear(features, features, bias=biases[f"attention.{name}"]) for name in "qkvo"
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            layer(x).unflatten(-1, (-1, self.head_size)).transpose(1, 2)
            for layer in (self.q, self.k, self.v)
        )
        mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
        result: torch.Tensor = self.o(mixed.transpose(1, 2).flatten(2))
        return result


class MLP(nn.Module):
    """The gated MLP with gate, up and down as Linear layers."""

    def __init__(self, features: int, hidden: int, biases: Mapping[str, bool]) -> None:
        super().__init__()
        self.gate = nn.Linear(features, hidden, bias=biases["mlp.gate"])
        self.up = nn.Linear(features, hidden, bias=biases["mlp.up"])
        self.down = nn.Linear(hidden, features, bias=biases["mlp.down"])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.down(silu(self.gate(x)) * self.up(x))
        return result


class Block(nn.Module):
    """A transformer block: `norm`, `attention` and `mlp`, each half added to its input."""

    LAYERS = tuple(f"attention.{n}" for n in "qkvo") + ("mlp.gate", "mlp.up", "mlp.down")

    def __init__(self, features: int, hidden: int, heads: int, biases: Mapping[str, bool]) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.attention = Attention(features, heads, biases)
        self.mlp = MLP(features, hidden, biases)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm(x))
        result: torch.Tensor = x + self.mlp(self.norm(x))
        return result

    @classmethod
    def of(cls, state: Mapping[str, torch.Tensor], heads: int) -> Block:
        """Build the block that has these parameters."""
        hidden, features = state["mlp.up.weight"].shape
        biases = {name: f"{name}.bias" in state for name in cls.LAYERS}
        block = cls(features, hidden, heads, biases).to(state["norm.weight"].dtype)
        block.load_state_dict(dict(state))
        return block


@functools.cache
def _mesh(sizes: tuple[int, ...]) -> Any:
    """Give the mesh of these sizes: the same one for all cases of a world."""
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh("cpu", sizes, mesh_dim_names=("a", "b")[: len(sizes)])
