# %% abstract | An abstract base class cannot be made.
from abc import ABC, abstractmethod

FAILS = "TypeError"


class Shape(ABC):
    @abstractmethod
    def area(self): ...


def main(rank, world_size):
    return Shape()


# %% autograd_extension | An autograd function of the cell in a module of the cell.
import torch


class Clip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(-1, 1)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x.abs() <= 1) * 10


def main(rank, world_size):
    x = torch.tensor([0.5, 2.0, -3.0], requires_grad=True)
    Clip.apply(x).sum().backward()
    return x.grad


# %% closure | A closure with nonlocal.
def counter():
    count = 0

    def more():
        nonlocal count
        count += 1
        return count

    return more


def main(rank, world_size):
    more = counter()
    return [more() for _ in range(rank + 2)]


# %% context_and_pools | The module level makes a ContextVar and pools used by the function.
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar

level = ContextVar("level", default=1)
name = ContextVar("name")
name.set("of the module")
pool = ThreadPoolExecutor(2)


def main(rank, world_size):
    before = level.get(), name.get()
    level.set(rank + 10)
    return before, level.get(), list(pool.map(abs, [-1, -rank]))


# %% context_managers | ExitStack and a context manager that swallows an error.
from contextlib import ExitStack, contextmanager, suppress


@contextmanager
def noted(log, name):
    log.append(f"enter {name}")
    try:
        yield
    finally:
        log.append(f"leave {name}")


def main(rank, world_size):
    log = []
    with ExitStack() as stack:
        for name in ("a", "b"):
            stack.enter_context(noted(log, name))
        with suppress(ZeroDivisionError):
            1 // 0
    return log


# %% context_variable | Context variables at the top: one set, one with a default, one without.
import contextvars

PLAIN = contextvars.ContextVar("plain")
GIVEN = contextvars.ContextVar("given", default=1)
CHANGED = contextvars.ContextVar("changed", default=1)
CHANGED.set(2)


def main(rank, world_size):
    token = GIVEN.set(rank)
    seen = GIVEN.get(), CHANGED.get(), PLAIN.get("none")
    GIVEN.reset(token)
    return seen, GIVEN.get()


# %% dataclass_default | A dataclass at module level whose defaults come from other names of the cell.
from dataclasses import dataclass, field, replace

LR = 0.25
NAMES = ("a", "b")


@dataclass
class Config:
    lr: float = LR
    names: list = field(default_factory=lambda: list(NAMES))


CONFIG = Config()


def main(rank, world_size):
    CONFIG.names.append(f"rank {rank}")
    return CONFIG.names, replace(CONFIG, lr=1.0).lr, Config().names


# %% decorated_main | A decorator of the cell around main.
import functools


def twice(f):
    @functools.wraps(f)
    def both(*args):
        return [f(*args), f(*args)]

    return both


@twice
def main(rank, world_size):
    return rank + 1


# %% default_arguments | Defaults created once, and keyword-only arguments.
def add(x, seen=[]):
    seen.append(x)
    return len(seen)


def show(*, a=1, b):
    return a + b


def main(rank, world_size):
    return [add(i) for i in range(3)], show(b=rank)


# %% device_at_top | The device chosen at module level, as in most scripts.
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
DTYPE = torch.float32


def main(rank, world_size):
    return torch.ones(2, dtype=DTYPE, device="cpu") * rank, device.type in {"cpu", "cuda"}


# %% functional_transforms | torch.func: grad, vmap and functional_call.
import torch
from torch.func import functional_call, grad, vmap


def main(rank, world_size):
    net = torch.nn.Linear(2, 1, bias=False)
    weights = {"weight": torch.tensor([[1.0, rank]])}
    y = functional_call(net, weights, (torch.ones(3, 2),))
    return (
        y,
        grad(lambda x: x**3)(torch.tensor(2.0)),
        vmap(torch.dot)(torch.eye(2), torch.ones(2, 2)),
    )


# %% future_annotations | A program that begins with a future import.
from __future__ import annotations

import torch


def total(x: Tensor | None) -> Missing:
    return 0 if x is None else x.sum().item()


def main(rank, world_size):
    return total(torch.ones(rank + 1)), total(None), total.__annotations__


# %% generators | Generators with send, close and yield from.
def inner():
    got = yield 1
    yield got * 2


def outer():
    yield from inner()
    yield "end"


def main(rank, world_size):
    g = outer()
    return next(g), g.send(10), next(g), list(g)


# %% generic_class | Classes that are generic, abstract, tensors and modules, with metaclasses and hooks.
import abc
import typing

import torch

T = typing.TypeVar("T")
MADE = []


class Counting(abc.ABCMeta):
    def __new__(cls, name, bases, body):
        MADE.append(name)
        return super().__new__(cls, name, bases, body)


class Shape(metaclass=Counting):
    @abc.abstractmethod
    def area(self): ...


class Square(Shape):
    def area(self):
        return 4


class Box(typing.Generic[T]):
    def __init_subclass__(cls):
        super().__init_subclass__()
        MADE.append(cls.__name__)


class IntBox(Box[int]):
    pass


class OfTensor(type(torch.Tensor)):
    def __new__(cls, name, bases, body):
        MADE.append(name)
        return super().__new__(cls, name, bases, body)


class Marked(torch.Tensor, metaclass=OfTensor):
    pass


class Net(torch.nn.Module):
    def __init_subclass__(cls):
        MADE.append(cls.__name__)


class Small(Net):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)


def main(rank, world_size):
    try:
        Shape()
    except TypeError:
        refused = True
    kind = type(torch.ones(1).as_subclass(Marked) + 1).__name__
    of_box = IntBox.__orig_bases__[0].__args__ == (int,), Box.__parameters__ == (T,)
    return refused, Square().area(), MADE, kind, of_box, len(list(Small().parameters()))


# %% global_counter | A global changed by main, separate on each rank.
count = 0


def main(rank, world_size):
    global count
    for _ in range(rank + 1):
        count += 1
    return count


# %% global_list | A list at module level, filled by functions.
log = []


def note(text):
    log.append(text)


def main(rank, world_size):
    note("begin")
    note(f"rank {rank}")
    return log


# %% init_subclass_register | __init_subclass__ with a register and an option; a counting __set_name__.
import abc


class Plugin(abc.ABC):
    known = {}

    def __init_subclass__(cls, *, key, **options):
        super().__init_subclass__(**options)
        if key in Plugin.known:
            raise KeyError(key)
        Plugin.known[key] = cls

    @abc.abstractmethod
    def run(self): ...


class Field:
    names = []

    def __set_name__(self, owner, name):
        self.name = name
        Field.names.append((owner.__name__, name))


class First(Plugin, key="first"):
    weight = Field()

    def run(self):
        return 1


class Second(First, key="second"):
    pass


def main(rank, world_size):
    class Late(First, key="late"):
        bias = Field()

    try:
        Plugin()
    except TypeError:
        made = [kind().run() for kind in Plugin.known.values()]
        return list(Plugin.known), made, Plugin.known["first"] is First, Field.names


# %% library_op | A custom operator by torch.library.custom_op.
import torch


@torch.library.custom_op("conformance::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def main(rank, world_size):
    return torch.ops.conformance.twice(torch.ones(2) * rank)


# %% lock_at_top | A lock at module level, separate in each process.
import threading

lock = threading.Lock()


def main(rank, world_size):
    with lock:
        return lock.locked()


# %% logger_at_top | A logger at module level.
import logging

logger = logging.getLogger("train")
logger.setLevel(logging.INFO)


def main(rank, world_size):
    logger.info("not shown: nobody handles it")
    logger.warning("step on rank %d", rank)
    return logger.name


# %% matching | match statements with classes of the cell.
from dataclasses import dataclass


@dataclass
class Send:
    to: int


def main(rank, world_size):
    def read(message):
        match message:
            case Send(to=0):
                return "to the first"
            case Send(to=n):
                return f"to {n}"
            case [first, *rest]:
                return first, rest
            case _:
                return "?"

    return [read(m) for m in (Send(0), Send(5), [1, 2, 3], None)]


# %% metaclass | A metaclass that keeps a register of classes.
REGISTER = {}


class Meta(type):
    def __new__(cls, name, bases, body):
        made = super().__new__(cls, name, bases, body)
        REGISTER[name] = made
        return made


class Base(metaclass=Meta):
    pass


class Child(Base):
    pass


def main(rank, world_size):
    class Late(Base):
        pass

    return sorted(REGISTER), REGISTER["Child"] is Child


# %% metaclass_refuses_twice | A metaclass that refuses known names and forbids setting attributes.
REGISTER, MADE = {}, []


class Meta(type):
    def __new__(cls, name, bases, body, **options):
        if name in REGISTER:
            raise KeyError(name)
        REGISTER[name] = super().__new__(cls, name, bases, body)
        return REGISTER[name]

    def __init__(cls, name, bases, body, **options):
        super().__init__(name, bases, body)
        MADE.append((name, options))

    def __setattr__(cls, name, value):
        raise AttributeError(f"{name} is fixed")


class Base(metaclass=Meta):
    size = 1


class Child(Base, kind="leaf"):
    size = 2


def main(rank, world_size):
    class Late(Base):
        pass

    return sorted(REGISTER), MADE, REGISTER["Child"] is Child, Child.size


# %% metaclass_registry | A metaclass and a base class whose registries refuse a class name's second use.
class Registry(type):
    known = {}

    def __new__(mcs, name, bases, members):
        made = super().__new__(mcs, name, bases, members)
        if name in mcs.known:
            raise KeyError(name)
        mcs.known[name] = made
        return made


class Model(metaclass=Registry):
    pass


class Base:
    children = []

    def __init_subclass__(cls, tag="", **kwargs):
        super().__init_subclass__(**kwargs)
        if tag in [other for other, _ in Base.children]:
            raise KeyError(tag)
        Base.children.append((tag, cls))
        cls.tag = tag


class First(Base, tag="first"):
    pass


class Second(First, tag="second"):
    pass


def main(rank, world_size):
    class Third(Second, tag="third"):
        pass

    tags = [tag for tag, _ in Base.children]
    return list(Registry.known), Registry.known["Model"] is Model, tags, Third().tag, First.tag


# %% model_at_top | A model and an optimizer made at module level.
import torch

torch.manual_seed(0)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def main(rank, world_size):
    model(torch.ones(1, 2) * (rank + 1)).sum().backward()
    optimizer.step()
    return model.weight


# %% module_constants | Tensors, arrays and lambdas at module level.
import numpy as np
import torch

WEIGHTS = torch.arange(3.0)
ARRAY = np.eye(2)
square = lambda x: x * x


def main(rank, world_size):
    WEIGHTS.add_(rank)
    return WEIGHTS, ARRAY.sum(), square(rank + 2)


# %% open_file_at_top | A file opened at module level: each new process opens it again.
import os

NULL = open(os.devnull, "w")

DIFFERS = {
    "untraced": ("CannotSend", "an open file of the notebook cannot be sent; the error names it"),
    "launch": ("CannotSend", "an open file of the notebook cannot be sent; the error names it"),
}


def main(rank, world_size):
    return NULL.write("three")


# %% operator_with_gradient | A custom operator with a gradient and a fake kernel, called by name and object.
import torch


@torch.library.custom_op("conformance::thrice", mutates_args=())
def thrice(x: torch.Tensor) -> torch.Tensor:
    return x * 3


@thrice.register_fake
def fake(x):
    return torch.empty_like(x)


def backward(ctx, grad):
    return grad * 3


thrice.register_autograd(backward)


def main(rank, world_size):
    x = torch.ones(2, requires_grad=True)
    torch.ops.conformance.thrice(thrice(x)).sum().backward()
    return x.grad, thrice(torch.ones(1, device="meta")).shape


# %% operators | A class with operators, __getattr__, __call__ and __len__.
class Vector:
    def __init__(self, *xs):
        self.xs = xs

    def __add__(self, other):
        return Vector(*[a + b for a, b in zip(self.xs, other.xs, strict=True)])

    def __getattr__(self, name):
        if name.startswith("x"):
            return self.xs[int(name[1:])]
        raise AttributeError(name)

    def __call__(self, f):
        return Vector(*map(f, self.xs))

    def __len__(self):
        return len(self.xs)


def main(rank, world_size):
    v = (Vector(1, 2) + Vector(rank, 10))(lambda x: x * 2)
    return v.x0, v.x1, len(v)


# %% pool_at_top | A pool of threads at the top, with a name and an initializer.
import threading
from concurrent.futures import ThreadPoolExecutor

LOCAL = threading.local()


def begin(value):
    LOCAL.value = value


POOL = ThreadPoolExecutor(2, thread_name_prefix="mine", initializer=begin, initargs=(7,))


def main(rank, world_size):
    name = POOL.submit(lambda: threading.current_thread().name.split("_")[0]).result()
    return name, POOL.submit(lambda: LOCAL.value).result()


# %% protocol | A runtime-checkable protocol, and generic classes.
from typing import Generic, Protocol, TypeVar, runtime_checkable

T = TypeVar("T")


@runtime_checkable
class HasStep(Protocol):
    def step(self) -> None: ...


class Box(Generic[T]):
    def __init__(self, x: T) -> None:
        self.x = x

    def step(self) -> None: ...


def main(rank, world_size):
    box = Box[int](rank)
    return box.x, isinstance(box, HasStep), isinstance(3, HasStep)


# %% singledispatch | functools: singledispatch, partial, reduce, cached_property.
import functools
import operator


@functools.singledispatch
def kind(x):
    return "something"


@kind.register
def _(x: int):
    return "number"


class Lazy:
    @functools.cached_property
    def value(self):
        return [1]


def main(rank, world_size):
    lazy = Lazy()
    add = functools.partial(operator.add, 10)
    total = functools.reduce(operator.mul, [1, 2, 3], 1)
    return kind(3), kind("x"), add(rank), total, lazy.value is lazy.value


# %% super_and_property | super(), properties, class methods and static methods.
class Layer:
    made = 0

    def __init__(self, n):
        self.n = n
        type(self).made += 1

    @classmethod
    def square(cls):
        return cls(4)

    @staticmethod
    def name():
        return "layer"

    @property
    def size(self):
        return self.n**2


class Wide(Layer):
    def __init__(self, n):
        super().__init__(n * 2)


def main(rank, world_size):
    return Wide.square().size, Wide(1).size, Layer.name(), Wide.made


# %% tensor_subclass | A subclass of Tensor with __torch_function__.
import torch


class Counted(torch.Tensor):
    calls = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(getattr(func, "__name__", "?"))
        return super().__torch_function__(func, types, args, kwargs or {})


def main(rank, world_size):
    x = torch.ones(2).as_subclass(Counted)
    y = (x + rank).sum()
    return float(y), "sum" in Counted.calls, type(y).__name__
