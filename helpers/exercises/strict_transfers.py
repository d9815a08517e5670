"""Inside a rank: transfers that take every liberty they have, so that a race shows on every run.

    answer, under watch_transfers(Strict()):
        irecv -> its tensor holds nonsense until wait()
        isend -> its tensor must be unchanged when wait() is called
        a transfer that nobody waits for is ended here, so that the trace, not a hang, tells of it

The programmes of notebook 03's exercises use it; `slow_receiver.py` builds on the same hooks.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from helpers.ranks.inside import span

FINISH = timedelta(seconds=3)
"""For transfers that nobody waited for: longer than a message takes that will come at all."""
_BUSY_TURNS = 20


class BufferInUse(RuntimeError):
    """A tensor was written to while a transfer still read it."""


class BufferShared(RuntimeError):
    """One tensor is sent and received into at the same time."""


class WaitedTwice(RuntimeError):
    """A second `wait()` on one transfer, which under gloo may never return."""


@dataclass(eq=False)
class Flight:
    """One transfer under way: the learner's tensor, and what stands in for it or was in it."""

    work: dist.Work
    peer: int
    tensor: torch.Tensor
    kept: torch.Tensor
    waited: bool = False


class Transfers:
    """Keeps the transfers of this rank; subclasses say what to make of them."""

    def __init__(self) -> None:
        self.sends: list[Flight] = []
        self.recvs: list[Flight] = []
        self._by_work: weakref.WeakKeyDictionary[dist.Work, Flight] = weakref.WeakKeyDictionary()

    def sent(self, tensor: torch.Tensor, peer: int, work: dist.Work) -> None:
        """Take note of a send that has been issued."""
        flight = Flight(work, peer, tensor, tensor.detach().clone())
        self.sends.append(flight)
        self._by_work[work] = flight

    def stand_in(self, tensor: torch.Tensor) -> torch.Tensor:
        """Give the tensor into which a receive really writes until it is waited for."""
        return tensor

    def receives(
        self, tensor: torch.Tensor, peer: int, work: dist.Work, into: torch.Tensor
    ) -> None:
        """Take note of a receive that has been issued."""
        flight = Flight(work, peer, tensor, into)
        self.recvs.append(flight)
        self._by_work[work] = flight

    def waits(self, work: dist.Work) -> Flight | None:
        """Take note that the rank begins to wait. Raise WaitedTwice if it has done so before."""
        flight = self._by_work.get(work)
        if flight is not None and flight.waited:
            raise WaitedTwice(
                "wait() is called twice on one transfer: gloo may wait for ever the second time. "
                "Wait for each transfer once."
            )
        if flight is not None:
            flight.waited = True
        return flight

    def arrived(self, flight: Flight) -> None:
        """Take note that a transfer which the rank waited for is over."""

    def finish(self, wait: Callable[..., Any]) -> None:
        """End what nobody waited for, unseen by the trace, so that no connection is lost."""
        for flight in self.sends + self.recvs:
            if not flight.waited:
                try:
                    wait(flight.work, FINISH)
                except RuntimeError:
                    return  # no one took part in it: the trace says so


class Strict(Transfers):
    """Hides what a receive brings until it is waited for; tells when a tensor in flight changes."""

    def sent(self, tensor: torch.Tensor, peer: int, work: dist.Work) -> None:
        super().sent(tensor, peer, work)
        self._alone(tensor, self.recvs)

    def stand_in(self, tensor: torch.Tensor) -> torch.Tensor:
        self._alone(tensor, self.sends)
        into = torch.empty_like(tensor)
        with torch.no_grad():
            tensor.fill_(_nonsense(tensor.dtype))
        return into

    def _alone(self, tensor: torch.Tensor, others: list[Flight]) -> None:
        """Raise BufferShared if a transfer of the other direction has this memory in flight."""
        if any(not other.waited and _overlap(tensor, other.tensor) for other in others):
            raise BufferShared(
                "one tensor is sent and received into at the same time: what comes in overwrites "
                "what still has to leave. Receive into a tensor of its own, torch.empty_like(x)."
            )

    def waits(self, work: dist.Work) -> Flight | None:
        flight = super().waits(work)
        if flight in self.sends and flight is not None and not _same(flight.tensor, flight.kept):
            raise BufferInUse(
                f"the tensor that this rank sends to rank {flight.peer} was changed before wait(): "
                "what arrives may be the old value, the new one, or some of both. Wait before you "
                "write, or write into another tensor."
            )
        return flight

    def arrived(self, flight: Flight) -> None:
        if flight in self.recvs:
            with torch.no_grad():
                flight.tensor.copy_(flight.kept)


@contextmanager
def watch_transfers(transfers: Transfers) -> Iterator[None]:
    """Tell `transfers` of every send, receive and wait of this process, whoever calls them."""
    group, work_type = dist.ProcessGroup, dist.Work
    send, recv, wait = group.send, group.recv, work_type.wait
    unseen = getattr(wait, "__wrapped__", wait)

    def watched_send(pg: Any, tensors: list[torch.Tensor], dst: int, tag: int) -> dist.Work:
        work: dist.Work = send(pg, tensors, dst, tag)
        transfers.sent(tensors[0], dst, work)
        return work

    def watched_recv(pg: Any, tensors: list[torch.Tensor], src: int, tag: int) -> dist.Work:
        into = transfers.stand_in(tensors[0])
        work: dist.Work = recv(pg, [into], src, tag)
        transfers.receives(tensors[0], src, work, into)
        return work

    def watched_wait(work: dist.Work, *args: Any, **kwargs: Any) -> Any:
        flight = transfers.waits(work)
        result = wait(work, *args, **kwargs)
        if flight is not None:
            transfers.arrived(flight)
        return result

    patches = ((group, "send", watched_send), (group, "recv", watched_recv))
    for owner, name, watched in (*patches, (work_type, "wait", watched_wait)):
        setattr(owner, name, watched)
    try:
        yield
        transfers.finish(unseen)
    finally:
        for owner, name, real in ((group, "send", send), (group, "recv", recv)):
            setattr(owner, name, real)
        work_type.wait = wait  # type: ignore[method-assign]


def strictly(answer: Callable[..., Any], rank: int, world_size: int, *inputs: Any) -> Any:
    """Call the answer as kind RANKS would, under strict transfers."""
    with watch_transfers(Strict()):
        return answer(rank, world_size, *inputs)


def with_compute(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    x: torch.Tensor,
    result: torch.Tensor,
) -> Any:
    """Hand the answer a `compute()` that records a span of this name and gives `result`."""

    def compute() -> torch.Tensor:
        with span("compute"):
            keep_busy()
        return result.clone()

    return strictly(answer, rank, world_size, x, compute)


def keep_busy() -> None:
    """Compute for some milliseconds, so that a span can be seen beside the transfers."""
    busy = torch.full((160, 160), 1 / 160)
    for _ in range(_BUSY_TURNS):
        busy = busy @ busy


def _overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Tell whether two contiguous tensors share bytes, as p2p tensors are contiguous."""
    (a, b), (c, d) = (
        (t.data_ptr(), t.data_ptr() + t.numel() * t.element_size()) for t in (one, other)
    )
    return a < d and c < b


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Compare bit by bit, so that NaN equals itself."""
    bits = [t.detach().contiguous().reshape(-1).view(torch.uint8) for t in (one, other)]
    return torch.equal(*bits)


def _nonsense(dtype: torch.dtype) -> float | int:
    if dtype.is_floating_point or dtype.is_complex:
        return float("nan")
    return 1 if dtype is torch.bool else torch.iinfo(dtype).max
