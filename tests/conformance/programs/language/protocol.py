"""A protocol that is looked at when it runs, and generic classes."""

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
