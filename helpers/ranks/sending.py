"""Send a notebook's definitions to a rank, and restore them on the rank.

`payload` pickles with `dumps`. A rank unpickles with `pickle.loads`, which calls the functions at the end of
this file. In contrast to plain cloudpickle, objects with a name in a module are sent by name, and a cell's
definitions are stored in the rank's `__main__`, as if the rank had run the cell.
"""

from __future__ import annotations

import builtins
import concurrent.futures
import contextvars
import functools
import io
import linecache
import logging
import multiprocessing
import multiprocessing.managers
import os
import sys
import threading
import types
import typing
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from cloudpickle import CloudPickler
from cloudpickle.cloudpickle import (
    _class_setstate,
    _dynamic_class_reduce,
    _function_setstate,
    _lookup_class_or_track,
    _lookup_module_and_qualname,
    _make_skeleton_class,
    dynamic_subimport,
)

from helpers.ranks.cells import Source, cell_name
from helpers.ranks.operators import describe_operator, make_operator
from helpers.ranks.sending_memory import Block, Memory, is_array, reduce_block
from helpers.ranks.sending_state import reduce_attached

# Names that functions of a script may read in `__main__`. The `__main__` of a notebook has no
# `__file__`.
_MAIN_ATTRIBUTES = ("__file__", "__package__")


def dumps(
    value: Any, use_main: bool = True, earlier_objects: Sequence[Any] = ()
) -> tuple[bytes, dict[str, Source]]:
    """Pickle `value`. Also return {file: source} for the cells whose code it contains.

    Args:
        value: The object to send.
        use_main: If True, functions of `__main__` use the rank's `__main__` for their global variables, as in
            a script. Otherwise they use a separate namespace, so that nothing in `__main__` is replaced.
        earlier_objects: Objects that are pickled before `value` into the same stream, for the same Unpickler.
            An object that occurs in both is also one object on the rank: for example, after `F.gelu = mine`,
            `F.gelu is mine` is also true on the rank.
    """
    data, _, sources = dumps_with_parts(value, (), use_main, earlier_objects)
    return data, sources


def dumps_with_parts(
    value: Any, parts: Sequence[Any], use_main: bool = True, earlier_objects: Sequence[Any] = ()
) -> tuple[bytes, tuple[bytes, ...], dict[str, Source]]:
    """Pickle `value` like `dumps`, and each of `parts` as a continuation of `value`.

    The Unpickler that has read `value` can read any of the parts next. So an object that occurs in both is
    one object on the rank. An empty part is pickled as no bytes.
    """
    pickler = _Pickler(Memory())
    result = pickler.dump_all(value, parts, use_main, earlier_objects)
    if blocks := pickler.memory.find_blocks():
        # The first Pickler is still alive, so no object made while pickling has been freed.
        result = _Pickler(Memory(blocks)).dump_all(value, parts, use_main, earlier_objects)
    return result


class _MainNamespace(dict[str, Any]):
    """Placeholder for `__main__.__dict__` during pickling."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[dict[str, Any]]]:
        return main_namespace, ({name: self[name] for name in _MAIN_ATTRIBUTES if self.get(name)},)


class _Pickler(CloudPickler):  # type: ignore[misc]
    def __init__(self, memory: Memory) -> None:
        self._file = io.BytesIO()
        super().__init__(self._file)
        self.memory = memory
        self.sources: dict[str, Source] = {}
        self._main = sys.modules["__main__"].__dict__
        self.globals_ref[id(self._main)] = _MainNamespace()

    def dump_all(
        self, value: Any, parts: Sequence[Any], use_main: bool, earlier_objects: Sequence[Any]
    ) -> tuple[bytes, tuple[bytes, ...], dict[str, Source]]:
        """Pickle like `dumps_with_parts`, in a single attempt."""
        for obj in earlier_objects:
            self.dump(obj)
        if not use_main:
            del self.globals_ref[id(self._main)]
        self.dump(value)
        data = self._file.getvalue()
        memo = self.memo.copy() if any(parts) else {}
        return data, tuple(self._dump_part(part, memo) for part in parts), self.sources

    def _dump_part(self, part: Any, memo: Any) -> bytes:
        if not part:
            return b""
        self.memo = memo
        self.memory.begin_part()
        start = self._file.seek(0, os.SEEK_END)
        self.dump(part)
        return self._file.getvalue()[start:]

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, types.CodeType):
            return _reduce_code(obj)
        if isinstance(obj, types.ModuleType):
            return _reduce_module(obj)
        if obj is sys.stdout or obj is sys.stderr:  # cloudpickle does not know a kernel's streams
            return _get_stream, ("stdout" if obj is sys.stdout else "stderr",)
        if type(obj) in weakref.ProxyTypes:
            return _reduce_proxy_of_object(obj)
        if type(obj).__module__ == "IPython.core.autocall":  # IPython's `exit` and `quit`
            return _get_builtin, ("exit",)
        for kind, reduce in _REDUCERS:
            if isinstance(obj, kind):
                return self._store_in_main(obj, reduce(obj))
        if (torch_reduced := self._reduce_torch_object(obj)) is not None:
            return self._store_in_main(obj, torch_reduced)
        if is_array(obj) and (array_reduced := self.memory.reduce_array(obj)) is not None:
            return array_reduced
        if isinstance(obj, Block):
            return reduce_block(obj)
        if (dispatch_reduced := _reduce_singledispatch(obj)) is not None:
            return self._store_in_main(obj, dispatch_reduced)
        if isinstance(obj, (types.FunctionType, type)) and _is_dynamic_module(obj.__module__):
            if isinstance(obj, type):
                return _reduce_class(_dynamic_class_reduce(obj))
            return self._dynamic_function_reduce(obj)
        return self._store_in_main(obj, _reduce_class(super().reducer_override(obj)))

    def _function_getnewargs(self, func: types.FunctionType) -> Any:
        self._note_source(func.__code__.co_filename)
        # Functions that share a variable by `nonlocal` also share it on the rank. With cloudpickle, each
        # function would have a separate variable.
        return *super()._function_getnewargs(func)[:4], func.__closure__

    def _store_in_main(self, obj: Any, reduced: Any) -> Any:
        """Make the rank store an object of `__main__` under the same name in the rank's `__main__`.

        Otherwise pickle could not find it on the rank, for example in `torch.save(Net())`, in
        `all_gather_object(out, Foo())`, or in a Pool within the rank.
        """
        if not isinstance(reduced, tuple):
            return reduced
        name = getattr(obj, "__qualname__", "")
        if not isinstance(name, str) or self._main.get(name) is not obj:
            return reduced
        make, args, *rest = reduced
        setter = rest[3] if len(rest) > 3 else None
        state = rest[0] if rest else None
        return make, args, (name, state), None, None, _MAIN_SETTERS[setter]

    def _reduce_torch_object(self, obj: Any) -> Any:
        torch = sys.modules.get("torch")
        if torch is None:
            return None
        if isinstance(obj, (torch.UntypedStorage, torch.storage.TypedStorage)):
            return self.memory.reduce_storage(obj)
        reduced = reduce_attached(obj, self._variable_name)
        return _reduce_torch_object(torch, obj) if reduced is None else reduced

    def _variable_name(self, obj: Any) -> str:
        names = (name for name, value in list(self._main.items()) if value is obj)
        return next((name for name in names if not name.startswith("_")), "")

    def _note_source(self, file: str) -> None:
        # Only cells have entries without a modification time. The rank can read files.
        entry = linecache.cache.get(file)
        if file not in self.sources and entry is not None and len(entry) == 4 and entry[1] is None:
            self.sources[file] = Source(cell_name(file), "".join(entry[2]))


def _reduce_class(reduced: Any) -> Any:
    """Create a class on the rank without the code that its metaclass and bases run for new classes.

    That code has already run in the kernel, and its registrations are sent as well. On a second run, it would
    find each class already registered: either by the sent entry, or because cloudpickle creates a class twice
    if the register of classes refers to it.
    """
    if not isinstance(reduced, tuple) or reduced[0] is not _make_skeleton_class:
        return reduced
    kind, name, bases, kwargs, tracker, _ = reduced[1]
    # Code of metaclasses from libraries or written in C, such as ABCMeta or torch's metaclasses, might be
    # needed, so it is run.
    library_metaclass = next(part for part in kind.__mro__ if not _is_sent_by_value(part))
    resolved = types.resolve_bases(bases)
    hooked_classes = [
        part
        for part in dict.fromkeys(p for base in resolved for p in base.__mro__)
        if "__init_subclass__" in vars(part) and _is_sent_by_value(part)
    ]
    args = (library_metaclass, kind, name, bases, kwargs, tracker, hooked_classes)
    return _make_class, args, *reduced[2:5], _set_class_state


def _is_sent_by_value(kind: type) -> bool:
    return _lookup_module_and_qualname(kind) is None or _is_dynamic_module(kind.__module__)


def _reduce_code(code: types.CodeType) -> Any:
    """Send code with its file name, which failures and records show; cloudpickle 3.1.3 omits it."""
    make, parts = CloudPickler.dispatch_table[types.CodeType](code)
    return _make_code, (code.co_filename, make, parts)


def _reduce_module(module: types.ModuleType) -> Any:
    """Send a module by name, including objects that look like a module (`torch.ops.aten`).

    cloudpickle knows only plain modules, and also sends each submodule whose name occurs in the code.
    """
    name = getattr(module, "__name__", "")
    registered = sys.modules.get(name)
    if registered is not module:
        names = [
            key
            for key, other in list(sys.modules.items())
            if other is module and key != "__mp_main__"
        ]
        name = names[0] if names else name
        if not names and _import_object(name) is not module:
            return _reduce_module_by_value(module)
    elif _is_dynamic_module(name):
        return _reduce_module_by_value(module)
    return _import_object, (name,)


def _is_dynamic_module(name: str) -> bool:
    """Return whether a cell created a module and added it to sys.modules, so that no rank can import it."""
    top = sys.modules.get(str(name).partition(".")[0])
    if top is None or top.__name__ in {"__main__", "__mp_main__"}:
        return False
    return getattr(top, "__spec__", None) is None and getattr(top, "__file__", None) is None


def _reduce_module_by_value(module: types.ModuleType) -> Any:
    state = {k: v for k, v in vars(module).items() if k != "__builtins__"}
    return dynamic_subimport, (module.__name__, state)


def _reduce_cached(cached: Any) -> Any:
    """Send a function wrapped by `functools.cache`. The rank starts with an empty cache."""
    if _lookup_module_and_qualname(cached) is not None:
        return NotImplemented
    settings = cached.cache_parameters()
    return _make_cached, (cached.__wrapped__, settings["maxsize"], settings["typed"]), vars(cached)


def _reduce_cached_property(prop: functools.cached_property[Any]) -> Any:
    return _make_cached_property, (prop.func, prop.attrname)  # without the lock used in Python 3.11


def _lock_reducer(make: Callable[[], Any]) -> Callable[[Any], Any]:
    # Each process that runs a script creates a separate lock with that name, so each rank does the same.
    return lambda lock: (make, ())


def _reduce_thread_local(local: threading.local) -> Any:
    return threading.local, (), dict(vars(local))


def _reduce_context_variable(variable: contextvars.ContextVar[Any]) -> Any:
    try:
        default: tuple[Any, ...] = (contextvars.Context().run(variable.get),)
    except LookupError:
        default = ()
    try:
        value: tuple[Any, ...] = (variable.get(),)
    except LookupError:
        value = ()
    return _make_context_variable, (variable.name, default, value if value != default else ())


def _reduce_thread_pool(pool: concurrent.futures.ThreadPoolExecutor) -> Any:
    attributes = vars(pool)
    names = ("_max_workers", "_thread_name_prefix", "_initializer", "_initargs")
    return type(pool), tuple(attributes[name] for name in names)


def _reduce_process_pool(pool: concurrent.futures.ProcessPoolExecutor) -> Any:
    attributes = vars(pool)
    method = attributes["_mp_context"].get_start_method()
    names = ("_initializer", "_initargs", "_max_tasks_per_child")
    return _make_process_pool, (
        type(pool),
        attributes["_max_workers"],
        method,
        *(attributes[name] for name in names),
    )


def _reduce_log_file(handler: logging.FileHandler) -> Any:
    """Send a log handler without its open file, because each process that runs a script opens the file."""
    if (
        type(handler) is not logging.FileHandler
    ):  # Subclasses rename files or connect, so two processes must not share one.
        return NotImplemented
    state = {name: value for name, value in vars(handler).items() if name not in {"stream", "lock"}}
    # Always append, because the file exists and the kernel continues to write to it.
    return _make_log_file, ({**state, "mode": "a", "stream": None},)


def _reduce_proxy(proxy: Any) -> Any:
    """Send a proxy of a multiprocessing.Manager with this process's key, which the manager requires.

    Children started by multiprocessing inherit the key.
    """
    make, args = proxy.__reduce__()
    return _make_proxy, (bytes(multiprocessing.current_process().authkey), make, args)


def _reduce_cell(cell: types.CellType) -> Any:
    """Send a variable of an enclosing function.

    The variable's value is set later, because it may be a function that uses the variable.
    """
    try:
        state = (cell.cell_contents,)
    except ValueError:  # the cell is still empty
        return types.CellType, ()
    return types.CellType, (), state, None, None, _fill_cell


def _reduce_weak_reference(reference: weakref.ReferenceType[Any]) -> Any:
    if type(reference) is weakref.WeakMethod:
        return _make_weak_reference, (weakref.WeakMethod, reference(), None)
    if type(reference) is not weakref.ReferenceType:
        return NotImplemented
    return _make_weak_reference, (weakref.ref, reference(), reference.__callback__)


def _reduce_proxy_of_object(proxy: Any) -> Any:
    referent = proxy.__init__.__self__  # A proxy's attributes are those of its object.
    return _make_weak_reference, (weakref.proxy, referent, None)


def _reduce_weak_container(container: Any) -> Any:
    items = list(container) if isinstance(container, weakref.WeakSet) else dict(container)
    return type(container), (), items, None, None, _fill_weak_container


def _reduce_new_type(new_type: Any) -> Any:
    return _make_new_type, (new_type.__name__, new_type.__supertype__, new_type.__module__)


def _reduce_named_parameter(parameter: Any) -> Any:
    return type(parameter), (parameter.__name__,)


def _reduce_singledispatch(function: Any) -> Any:
    """Send a functools.singledispatch function without its cache, which holds weak references."""
    registry = getattr(function, "registry", None) if type(function) is types.FunctionType else None
    if (
        registry is None
        or _lookup_module_and_qualname(function) is not None
        or not isinstance(registry, types.MappingProxyType)
    ):
        return None
    return _make_singledispatch, (
        registry[object],
        [(k, v) for k, v in registry.items() if k is not object],
    )


_REDUCERS: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (functools._lru_cache_wrapper, _reduce_cached),
    (functools.cached_property, _reduce_cached_property),
    (type(threading.Lock()), _lock_reducer(threading.Lock)),
    (type(threading.RLock()), _lock_reducer(threading.RLock)),
    (threading.local, _reduce_thread_local),
    (types.CellType, _reduce_cell),
    (weakref.ReferenceType, _reduce_weak_reference),
    (weakref.WeakSet, _reduce_weak_container),
    (weakref.WeakKeyDictionary, _reduce_weak_container),
    (weakref.WeakValueDictionary, _reduce_weak_container),
    (typing.NewType, _reduce_new_type),
    (typing.ParamSpec, _reduce_named_parameter),
    (typing.TypeVarTuple, _reduce_named_parameter),
    (contextvars.ContextVar, _reduce_context_variable),
    (concurrent.futures.ThreadPoolExecutor, _reduce_thread_pool),
    (concurrent.futures.ProcessPoolExecutor, _reduce_process_pool),
    (logging.FileHandler, _reduce_log_file),
    (multiprocessing.managers.BaseProxy, _reduce_proxy),
)


def _reduce_torch_object(torch: Any, obj: Any) -> Any:
    """Send those of torch's objects that cloudpickle cannot handle. Return None for everything else.

    Operators are sent by name, and scripted functions and modules in the format of torch.jit.save. For an
    object wrapped by torch.compile or torch.compiler.disable, only the inner object is sent, and the rank
    wraps it again, because machine code and guards belong to one process.
    """
    if isinstance(obj, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        packet = getattr(obj, "_overloadpacket", obj)
        path = f"torch.ops.{packet._qualified_op_name.replace('::', '.')}"
        return _import_object, (path if packet is obj else f"{path}.{obj._overloadname}",)
    if isinstance(obj, (torch.jit.ScriptFunction, torch.jit.ScriptModule)):
        file = io.BytesIO()
        torch.jit.save(obj, file)
        return _load_scripted, (file.getvalue(),)
    if isinstance(obj, torch._library.custom_ops.CustomOpDef):
        return make_operator, (describe_operator(obj),)
    if "torch._dynamo" not in sys.modules:
        return None
    from torch._dynamo.eval_frame import OptimizedModule

    if isinstance(obj, OptimizedModule):
        hooks = {key: value for key, value in vars(obj).items() if key.endswith("hooks") and value}
        reduced = _compile, (obj._orig_mod, _compile_settings(obj.dynamo_ctx))
        return *reduced, hooks or None, None, None, _set_attributes
    if not isinstance(obj, types.FunctionType) or "_torchdynamo_orig_callable" not in vars(obj):
        return None
    if vars(obj).get("_torchdynamo_wrapper_id", id(obj)) != id(obj):
        return None  # functools.wraps has copied the attribute from the inner function.
    inner = vars(obj)["_torchdynamo_orig_callable"]
    if getattr(obj, "_torchdynamo_disable", False):
        return _disable_compile, (inner,)
    closure = dict(zip(obj.__code__.co_freevars, obj.__closure__ or (), strict=True))
    return _compile, (inner, _compile_settings(closure["self"].cell_contents))


def _compile_settings(context: Any) -> dict[str, Any]:
    """Read, from torch's objects, the arguments with which torch.compile was called."""
    backend = context.callback
    while hasattr(backend, "_torchdynamo_orig_backend"):
        backend = backend._torchdynamo_orig_backend
    settings = {"fullgraph": bool(context.fullgraph), "dynamic": context._dynamic}
    if type(backend).__name__ == "_TorchCompileInductorWrapper":
        return {**settings, "backend": "inductor", "options": dict(backend.config) or None}
    from torch._dynamo.backends.registry import list_backends

    known = backend.compiler_name in list_backends(exclude_tags=None)
    return {
        **settings,
        "backend": backend.compiler_name if known else backend.compiler_fn,
        "mode": backend.kwargs.get("mode"),
        "options": backend.kwargs.get("options"),
    }


# The functions below run on the rank.

_kept_referents: list[Any] = []


def main_namespace(script_names: Mapping[str, Any]) -> dict[str, Any]:
    """Return the global variables of this process's `__main__`."""
    namespace = sys.modules["__main__"].__dict__
    namespace.update(script_names)
    return namespace


def _make_code(
    file: str, make: Callable[..., types.CodeType], parts: Sequence[Any]
) -> types.CodeType:
    return make(*parts).replace(co_filename=file)


def _import_object(path: str) -> Any:
    """Import the object at a path such as `torch.ops.aten`; return None if there is none."""
    parts = path.split(".")
    for count in range(len(parts), 0, -1):
        name = ".".join(parts[:count])
        try:
            __import__(name)
            obj: Any = sys.modules[name]
            for part in parts[count:]:
                obj = getattr(obj, part)
            return obj
        except (ImportError, AttributeError, KeyError, ValueError):
            continue
    return None


def _make_class(
    library_metaclass: type,
    kind: type,
    name: str,
    bases: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    tracker: str,
    hooked_classes: Sequence[type],
) -> Any:
    """Create an empty class by calling `library_metaclass`, from which the class's metaclass is derived."""
    resolved = types.resolve_bases(bases)
    body = {sys.intern(key): value for key, value in kwargs.items()}
    if resolved is not bases:
        body["__orig_bases__"] = bases
    with _disable_subclass_hooks(hooked_classes):
        new_class: Any = library_metaclass.__new__(kind, name, resolved, body)
        library: Any = library_metaclass
        library.__init__(new_class, name, resolved, body)
    return _lookup_class_or_track(tracker, new_class)


@contextmanager
def _disable_subclass_hooks(hooked_classes: Sequence[type]) -> Iterator[None]:
    """Make `__init_subclass__` of some classes call only the `__init_subclass__` of the next class."""
    # If the attributes of a class refer to its subclasses, the class is still empty when the subclasses
    # are made.
    owners = [owner for owner in hooked_classes if "__init_subclass__" in vars(owner)]
    saved = [(owner, vars(owner)["__init_subclass__"]) for owner in owners]
    try:
        for owner, _ in saved:
            type.__setattr__(owner, "__init_subclass__", _call_next_hook(owner))
        yield
    finally:
        for owner, hook in saved:
            type.__setattr__(owner, "__init_subclass__", hook)


def _call_next_hook(owner: Any) -> Any:
    return classmethod(lambda cls: super(owner, cls).__init_subclass__())


def _set_class_state(cls: type, state: tuple[dict[str, Any], Any]) -> None:
    """Set the attributes of a class as its body did, even if its metaclass forbids setting them."""
    attributes, _ = state
    for name, value in attributes.items():
        if name != "_abc_impl":
            type.__setattr__(cls, name, value)
    for kind in attributes.get("_abc_impl", ()):
        cls.register(kind)  # type: ignore[attr-defined]
    if "__firstlineno__" in attributes:  # Python 3.13 drops it when another attribute is set.
        type.__setattr__(cls, "__firstlineno__", attributes["__firstlineno__"])


def _make_context_variable(name: str, default: tuple[Any, ...], value: tuple[Any, ...]) -> Any:
    variable: contextvars.ContextVar[Any] = (
        contextvars.ContextVar(name, default=default[0])
        if default
        else contextvars.ContextVar(name)
    )
    for content in value:
        variable.set(content)
    return variable


def _make_process_pool(
    kind: Any, workers: int, method: str, initializer: Any, args: Any, max_tasks: int | None
) -> Any:
    context = multiprocessing.get_context(method)
    return kind(workers, context, initializer, args, max_tasks_per_child=max_tasks)


def _get_builtin(name: str) -> Any:
    return vars(builtins)[name]


def _get_stream(name: str) -> Any:
    return getattr(sys, name)


def _make_log_file(state: dict[str, Any]) -> logging.FileHandler:
    handler = logging.FileHandler(state["baseFilename"], "a", delay=True)
    vars(handler).update(state)
    return handler


def _make_cached(function: Callable[..., Any], maxsize: int | None, typed: bool) -> Any:
    return functools.lru_cache(maxsize, typed)(function)


def _make_cached_property(function: Callable[..., Any], name: str | None) -> Any:
    prop = functools.cached_property(function)
    prop.attrname = name
    return prop


def _make_proxy(key: bytes, make: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    multiprocessing.current_process().authkey = key
    return make(*args)


def _fill_cell(cell: types.CellType, state: tuple[Any]) -> None:
    (cell.cell_contents,) = state


def _make_weak_reference(make: Callable[[Any, Any], Any], referent: Any, callback: Any) -> Any:
    if referent is None:
        return weakref.ref(set())  # a dead reference, as in the notebook
    # In the notebook, a variable that is not sent may keep the object alive.
    _kept_referents.append(getattr(referent, "__self__", referent))
    return make(referent, callback)


def _fill_weak_container(container: Any, items: Any) -> None:
    _kept_referents.append(items)
    container.update(items)


def _make_new_type(name: str, base: Any, module: str) -> Any:
    new_type = typing.NewType(name, base)  # type: ignore[misc]
    new_type.__module__ = module
    return new_type


def _make_singledispatch(default: Callable[..., Any], others: Sequence[tuple[type, Any]]) -> Any:
    dispatcher = functools.singledispatch(default)
    for kind, function in others:
        dispatcher.register(kind, function)
    return dispatcher


def _compile(function: Any, settings: Mapping[str, Any]) -> Any:
    import torch

    return torch.compile(function, **settings)


def _disable_compile(function: Any) -> Any:
    import torch

    return torch.compiler.disable(function)


def _load_scripted(saved: bytes) -> Any:
    import torch

    return torch.jit.load(io.BytesIO(saved))


def _set_attributes(obj: Any, state: Any) -> None:
    if state:
        vars(obj).update(state)


def _set_state_in_main(
    setter: Callable[[Any, Any], Any], obj: Any, name_and_state: tuple[str, Any]
) -> None:
    name, state = name_and_state
    setter(obj, state)
    sys.modules["__main__"].__dict__.setdefault(name, obj)


def store_function_in_main(obj: Any, name_and_state: tuple[str, Any]) -> None:
    _set_state_in_main(_function_setstate, obj, name_and_state)


def store_class_in_main(obj: Any, name_and_state: tuple[str, Any]) -> None:
    _set_state_in_main(_set_class_state, obj, name_and_state)


def store_enum_in_main(obj: Any, name_and_state: tuple[str, Any]) -> None:
    _set_state_in_main(_class_setstate, obj, name_and_state)


def store_object_in_main(obj: Any, name_and_state: tuple[str, Any]) -> None:
    _set_state_in_main(_set_attributes, obj, name_and_state)


_MAIN_SETTERS = {
    _function_setstate: store_function_in_main,
    _set_class_state: store_class_in_main,
    _class_setstate: store_enum_in_main,
    None: store_object_in_main,
}
