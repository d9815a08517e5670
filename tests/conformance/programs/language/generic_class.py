"""Classes that are generic, abstract, tensors and modules at once with metaclasses and hooks of their own."""

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
