"""Send the objects that cells attach to tensors, optimizers and modules: hooks, gradients, attributes.

torch's pickling leaves these objects out. A forked process would have them, and so would each process that
ran the cell as a script. Attached objects are set after the main object has been created, because they may
refer back to it. For example, a hook of a parameter can use the model.
"""

from __future__ import annotations

import sys
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

_NO_GRAPH = (
    "{name} was computed in the notebook. Ranks have its value but not its graph, so no gradient can flow "
    "through it. Compute it inside the function, or send it after .detach() if you need only its value."
)


_HOOKS = ("hooks", "post_accumulate_hooks", "node_hooks", "node_prehooks")


def reduce_attached(obj: Any, name_of: Callable[[Any], str]) -> Any:
    """Send an object with its attached objects. Return None if pickle can send the object without help.

    name_of: a function that returns the name of a notebook's variable, or "".
    """
    torch = sys.modules["torch"]
    if isinstance(obj, torch.Tensor):
        return _reduce_tensor(obj, name_of)
    if isinstance(obj, torch.optim.Optimizer):
        return _reduce_optimizer(obj)
    if isinstance(obj, torch.nn.Module):
        return _reduce_parametrized(obj)
    if isinstance(obj, torch.utils.data.DataLoader):
        return _reduce_loader(obj)
    if type(obj) is OrderedDict:
        return _reduce_hooks(obj)
    if type(obj).__name__ == "AccumulateGrad" and isinstance(obj, torch.autograd.graph.Node):
        return _accumulator_of, (obj.variable,)
    return None


def _reduce_hooks(hooks: OrderedDict[Any, Any]) -> Any:
    """Send hooks with their numbers, so that hooks registered later on the rank get different numbers."""
    numbers = [key for key in hooks if type(key) is int]
    if not numbers or len(numbers) < len(hooks):
        return None
    return _make_hooks, (max(numbers) + 1,), None, None, iter(hooks.items())


def _reduce_optimizer(optimizer: Any) -> Any:
    kind: Any = type(optimizer)
    if kind.__reduce_ex__ is not object.__reduce_ex__ or kind.__reduce__ is not object.__reduce__:
        return None
    state = optimizer.__getstate__()
    attached = {key: value for key, value in vars(optimizer).items() if key not in state}
    if kind.__getstate__ is not sys.modules["torch"].optim.Optimizer.__getstate__:
        # The class itself decides which of its attributes can be sent.
        attached = {k: v for k, v in attached.items() if k == "step" or k.endswith("_hooks")}
    return _make_optimizer, (kind,), (state, attached), None, None, _set_optimizer_state


def _reduce_loader(loader: Any) -> Any:
    """Send a loader without its persistent workers. The rank starts new workers, as for a new loop."""
    kind: Any = type(loader)
    if loader._iterator is None or kind.__reduce_ex__ is not object.__reduce_ex__:
        return None
    state = {**vars(loader), "_iterator": None}
    return _make_empty, (kind,), state, None, None, _set_loader_state


def _reduce_parametrized(module: Any) -> Any:
    """Send a parametrized module. Its class was created by torch, which refuses to pickle it."""
    kind = type(module)
    if "parametrizations" not in vars(module).get("_modules", ()) or len(kind.__bases__) != 1:
        return None
    if kind.__name__ != f"Parametrized{kind.__bases__[0].__name__}":
        return None
    return (
        _make_empty,
        (kind.__bases__[0],),
        dict(vars(module)),
        None,
        None,
        _set_parametrized_state,
    )


def _reduce_tensor(tensor: Any, name_of: Callable[[Any], str]) -> Any:
    torch = sys.modules["torch"]
    kind = type(tensor)
    if isinstance(tensor, torch.nn.parameter.UninitializedTensorMixin):
        return None
    # Reading these attributes must not run the code of a subclass.
    with torch._C.DisableTorchFunctionSubclass():
        attached = _read_attached(tensor, name_of)
        is_leaf_with_grad = tensor.is_leaf and tensor.requires_grad
    is_parameter = isinstance(tensor, torch.nn.Parameter) and (
        kind.__reduce_ex__ is torch.nn.Parameter.__reduce_ex__
    )
    if is_parameter and issubclass(kind, torch.nn.Parameter):
        if not attached and kind is torch.nn.Parameter:
            return None
        reduced: tuple[Any, Any] = _make_parameter, (kind, tensor.data, tensor.requires_grad)
    elif kind is torch.Tensor:
        base = tensor._base
        if "graph" not in attached and _is_strided_view(tensor, base):
            layout = tuple(tensor.size()), tensor.stride(), tensor.storage_offset()
            reduced = _view_tensor, (base, *layout)
        elif tensor.layout is not torch.strided or tensor.is_quantized:
            reduced = _make_quietly, tensor.detach().__reduce_ex__(2)[:2]
        elif not attached:
            return None
        else:
            reduced = tensor.detach().__reduce_ex__(2)[:2]
        if is_leaf_with_grad:
            reduced = _make_leaf, reduced
    elif not attached and not is_leaf_with_grad:
        return None
    else:
        reduced = _reduce_subclass(tensor, attached)
        if is_leaf_with_grad:
            reduced = _make_leaf, reduced
    return *reduced, attached or None, None, None, _set_attached


def _is_strided_view(tensor: Any, base: Any) -> bool:
    torch = sys.modules["torch"]
    return (
        base is not None
        and tensor.layout is base.layout is torch.strided
        and tensor.dtype is base.dtype
        and tensor.device == base.device != torch.device("meta")
        and tensor.untyped_storage()._cdata == base.untyped_storage()._cdata
        and not (base.requires_grad or base.is_quantized or tensor.is_inference())
        and tensor.is_conj() == base.is_conj()
        and tensor.is_neg() == base.is_neg()
    )


def _reduce_subclass(tensor: Any, attached: dict[str, Any]) -> tuple[Any, Any]:
    """Reduce a tensor of a subclass as the class does, but without the tensor's attributes."""
    torch = sys.modules["torch"]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="backward hook")  # The hooks are in `attached`.
        make, args = tensor.__reduce_ex__(2)[:2]
    if (
        make is torch._tensor._rebuild_from_type_v2
        and type(tensor).__setstate__ is torch.Tensor.__setstate__
    ):
        make_plain, kind, plain_args, _ = args
        if make_plain is torch._utils._rebuild_tensor_v2:
            # If a leaf requires gradients, changing its class would give it a graph.
            plain_args = (*plain_args[:4], False, *plain_args[5:])
        return make, (make_plain, kind, plain_args, {})  # Attributes may refer to the tensor.
    attached.pop("attributes", None)
    return make, args


def _read_attached(tensor: Any, name_of: Callable[[Any], str]) -> dict[str, Any]:
    """Return the parts of this tensor that torch's pickling leaves out, including its attributes."""
    torch = sys.modules["torch"]
    attached: dict[str, Any] = {}
    if attributes := torch._utils._get_obj_state(tensor):
        attached["attributes"] = attributes
    if tensor._backward_hooks:
        attached["hooks"] = tensor._backward_hooks
    if not tensor.requires_grad:
        if tensor.is_leaf and tensor.grad is not None:
            attached["grad"] = tensor.grad
        return attached
    if tensor.is_leaf:
        if tensor._post_accumulate_grad_hooks:
            attached["post_accumulate_hooks"] = tensor._post_accumulate_grad_hooks
        if (dtype := getattr(tensor, "grad_dtype", tensor.dtype)) != tensor.dtype:
            attached["grad_dtype"] = dtype
        attached |= _hooks_of_accumulator(tensor)
    else:
        attached["graph"] = name_of(tensor) or f"A tensor of shape {tuple(tensor.shape)}"
    if tensor.is_leaf or tensor.retains_grad:
        if tensor.grad is not None:
            attached["grad"] = tensor.grad
        attached |= {} if tensor.is_leaf else {"retains_grad": True}
    return attached


def _hooks_of_accumulator(tensor: Any) -> dict[str, Any]:
    """Read the hooks of the node that accumulates a leaf's gradient, using the handle of a new hook."""
    torch = sys.modules["torch"]
    has_own_dispatch = type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__
    if tensor.is_inference() or tensor.layout is not torch.strided or has_own_dispatch:
        return {}
    handle_type = torch.utils.hooks.RemovableHandle
    next_id = handle_type.next_id
    node = _accumulator_of(tensor)
    found: dict[str, Any] = {}
    for name, register in (
        ("node_hooks", node.register_hook),
        ("node_prehooks", node.register_prehook),
    ):
        handle = register(_do_nothing)
        hooks = handle.hooks_dict_ref()
        handle.remove()
        if hooks:
            found[name] = hooks
    handle_type.next_id = next_id
    return found


def hooks_of(tensor: Any) -> list[Any]:
    """Return the functions attached to a tensor."""
    with sys.modules["torch"]._C.DisableTorchFunctionSubclass():
        attached = _read_attached(tensor, lambda _: "")
    return [hook for key in _HOOKS for hook in attached.get(key, {}).values()]


def _do_nothing(*args: Any) -> None:
    pass


# The functions below run on the rank.

_kept_nodes: list[Any] = []


def _make_hooks(next_id: int) -> OrderedDict[int, Any]:
    from torch.utils.hooks import RemovableHandle

    RemovableHandle.next_id = max(RemovableHandle.next_id, next_id)
    return OrderedDict()


def _make_empty(kind: Any) -> Any:
    return kind.__new__(kind)


def _make_optimizer(kind: Any) -> Any:
    optimizer = _make_empty(kind)
    # Do this before anything refers to `kind.step`, because a scheduler's replacement must call the `step`
    # with hooks.
    optimizer._patch_step_function()
    return optimizer


def _set_optimizer_state(optimizer: Any, states: tuple[Any, Mapping[str, Any]]) -> None:
    state, attached = states
    optimizer.__setstate__(state)
    vars(optimizer).update(attached)


def _set_loader_state(loader: Any, state: Mapping[str, Any]) -> None:
    vars(loader).update(state)  # A loader does not allow setting some attributes in the usual way.


def _set_parametrized_state(module: Any, state: Mapping[str, Any]) -> None:
    from torch.nn.utils import parametrize

    module.__setstate__(state)
    parametrize._inject_new_class(module)
    for name in module.parametrizations:
        parametrize._inject_property(module, name)


def _make_parameter(kind: Any, data: Any, requires_grad: bool) -> Any:
    import torch

    if kind is torch.nn.Parameter:
        return torch.nn.Parameter(data, requires_grad)
    return torch.Tensor._make_subclass(kind, data, requires_grad)


def _make_quietly(make: Any, args: tuple[Any, ...]) -> Any:
    """Create a sparse or quantized tensor without torch's warnings, which the notebook has already shown."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(*args)


def _make_leaf(make: Any, args: tuple[Any, ...]) -> Any:
    import torch

    tensor = make(*args)
    with torch._C.DisableTorchFunctionSubclass():
        return tensor if tensor.requires_grad else tensor.requires_grad_()


def _view_tensor(base: Any, size: Any, stride: Any, offset: int) -> Any:
    import torch

    with torch.enable_grad():
        return base.as_strided(size, stride, offset)


def _accumulator_of(leaf: Any) -> Any:
    import torch

    with torch.inference_mode(False), torch.enable_grad():
        return leaf.view_as(leaf).grad_fn.next_functions[0][0]


class _AllHooks:
    """A hook for a node. It calls the hooks of the notebook's node, as long as they are registered."""

    def __init__(self, hooks: Mapping[int, Callable[..., Any]]) -> None:
        self.hooks = hooks

    def __call__(self, gradients: Any, *others: Any) -> Any:
        for hook in tuple(self.hooks.values()):
            result = hook(gradients, *others)
            gradients = gradients if result is None else result
        return gradients


def _set_attached(tensor: Any, attached: Mapping[str, Any]) -> None:
    import torch

    with torch._C.DisableTorchFunctionSubclass():
        _attach(tensor, attached)
    if "attributes" in attached:
        torch._utils._set_obj_state(tensor, attached["attributes"])


def _attach(tensor: Any, attached: Mapping[str, Any]) -> None:
    if "graph" in attached:
        _hide_graph(tensor, attached["graph"])
    if "retains_grad" in attached:
        tensor.retain_grad()
    if "grad_dtype" in attached:
        tensor.grad_dtype = attached["grad_dtype"]
    if "grad" in attached:
        tensor.grad = attached["grad"]
    if "hooks" in attached:
        tensor._backward_hooks = attached["hooks"]
    if "post_accumulate_hooks" in attached:
        tensor._post_accumulate_grad_hooks = attached["post_accumulate_hooks"]
    if "node_hooks" in attached or "node_prehooks" in attached:
        node = _accumulator_of(tensor)
        _kept_nodes.append(node)
        if "node_hooks" in attached:
            node.register_hook(_AllHooks(attached["node_hooks"]))
        if "node_prehooks" in attached:
            node.register_prehook(_AllHooks(attached["node_prehooks"]))


def _hide_graph(tensor: Any, name: str) -> None:
    """Make a tensor's gradient depend on the notebook's graph, so that a backward pass raises an error."""
    import torch

    function: Any = torch.autograd.Function

    class StaysInNotebook(function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, tensor: Any, leaf: Any) -> Any:
            ctx.mark_dirty(tensor)
            return tensor

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            raise RuntimeError(_NO_GRAPH.format(name=name))

    if tensor.requires_grad:
        tensor.requires_grad_(False)
    with torch.enable_grad():
        StaysInNotebook.apply(tensor, torch.zeros((), device="cpu", requires_grad=True))
