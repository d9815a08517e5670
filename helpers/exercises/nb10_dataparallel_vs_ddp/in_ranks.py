"""Run answers of notebook 10: replicas in threads, and simulated timings.

module and x --answer--> replicas, each in a separate thread --Watch--> the visits of each replica
measure(...) --answer--> times and ratios, from timings that the launching process simulates
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Barrier, BrokenBarrierError, Condition
from typing import Any

import torch

BARRIER_TIMEOUT_S = 1.5
"""Timeout of a replica's forward that waits for the other replicas, which arrive within milliseconds."""


class ReplicaMonitor:
    """The record shared by a module's replicas: the rows of each replica, and whether all ran at once.

    Replicas wait for each other, then finish in reverse order, so that an answer gathering outputs in the
    order of finishing gets the rows in the wrong order.
    """

    def __init__(self, replicas: int) -> None:
        self.visits: list[tuple[int, int, int, tuple[int, ...]]] = []
        """For each forward, its first row, its number of rows, its module and its parameters' addresses."""
        self.ran_together = True
        self._entry_barrier = Barrier(replicas)
        self._exit_condition = Condition()
        self._inside: list[int] = []

    def __deepcopy__(self, memo: Any) -> ReplicaMonitor:
        return self

    def enter(self, module: torch.nn.Module, x: torch.Tensor) -> None:
        """Record a forward, and wait until all replicas have begun theirs."""
        first = int(x[0, 0]) if len(x) else -1
        with self._exit_condition:
            self.visits.append((first, len(x), id(module), _parameter_addresses(module)))
            self._inside.append(first)
        try:
            self._entry_barrier.wait(BARRIER_TIMEOUT_S)
        except BrokenBarrierError:
            self.ran_together = False

    def leave(self, x: torch.Tensor) -> None:
        """Wait until the replicas with later rows have finished."""
        first = int(x[0, 0]) if len(x) else -1
        with self._exit_condition:
            self._exit_condition.wait_for(lambda: first == max(self._inside), BARRIER_TIMEOUT_S)
            self._inside.remove(first)
            self._exit_condition.notify_all()


def _parameter_addresses(module: torch.nn.Module) -> tuple[int, ...]:
    layers = [module.get_submodule(name) for name in ("one", "frozen", "two")]
    return tuple(p.data_ptr() for layer in layers for p in (layer.weight, layer.bias))  # type: ignore[operator]


class WatchedModule(torch.nn.Module):
    """A small module with a frozen layer and a buffer. The first column of x is the row's number."""

    def __init__(self, seed: int, monitor: ReplicaMonitor | None = None) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.one = torch.nn.Linear(4, 5, dtype=torch.float64)
            self.frozen = torch.nn.Linear(5, 5, dtype=torch.float64).requires_grad_(False)
            self.two = torch.nn.Linear(5, 3, dtype=torch.float64)
        self.register_buffer("scale", torch.full((1,), 0.5, dtype=torch.float64))
        self.monitor = monitor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.monitor is not None:
            self.monitor.enter(self, x)
        y: torch.Tensor = self.two(self.frozen(self.one(x).tanh()).tanh()) * self.scale
        if self.monitor is not None:
            self.monitor.leave(x)
        return y


def plan_tensors(plan: Mapping[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the input of a plan, and the weights that turn its outputs into a loss."""
    generator = torch.Generator().manual_seed(plan["seed"])
    x = torch.randn(plan["rows"], 4, generator=generator, dtype=torch.float64)
    x[:, 0] = torch.arange(plan["rows"])
    return x, torch.randn(plan["rows"], 3, generator=generator, dtype=torch.float64)


def run_on_threads(
    answer: Any, rank: int, world_size: int, plan: Mapping[str, Any]
) -> dict[str, Any]:
    """Call answer(module, x, workers), run backward, and return the output, gradients and visits."""
    x, weights = plan_tensors(plan)
    monitor = ReplicaMonitor(len(x.chunk(plan["workers"])))
    module = WatchedModule(plan["seed"], monitor)
    memory = _parameter_addresses(module)
    with _raise_errors_of_threads():
        output = answer(module, x, plan["workers"])
    found: dict[str, Any] = {"output": output, "together": monitor.ran_together, "grads": None}
    visits = sorted(monitor.visits)
    found["rows"] = [count for _, count, _, _ in visits]
    found["modules"] = len({name for _, _, name, _ in visits})
    places = [place for _, _, _, place in visits]
    # `module` itself may be one of the replicas
    found["own_memory"] = all(
        name == id(module) or not {*memory} & {*place} for _, _, name, place in visits
    )
    found["memories"] = min(map(len, map(set, zip(*places, strict=True))), default=0)
    if isinstance(output, torch.Tensor) and output.shape == weights.shape and output.requires_grad:
        (output * weights).sum().backward()
        found["grads"] = {name: p.grad for name, p in module.named_parameters()}
    if isinstance(output, torch.Tensor):
        found["output"] = output.detach()
    return found


@contextmanager
def _raise_errors_of_threads() -> Iterator[None]:
    """Raise the first error that ended a thread in this block, instead of a resulting error.

    Otherwise an answer's author reads only that the thread's result is missing.
    """
    errors: list[BaseException] = []
    previous = threading.excepthook
    threading.excepthook = lambda args: errors.append(args.exc_value or args.exc_type())
    try:
        yield
    except Exception as error:
        raise (errors or [error])[0] from None
    finally:
        threading.excepthook = previous
    if errors:
        raise errors[0]


# --- simulated timings ---------------------------------------------------------------------------


def run_with_scripted_steps(
    answer: Any,
    rank: int,
    world_size: int,
    timing: Callable[..., float],
    worlds: list[int],
    samples: int,
) -> Any:
    """Call answer(measure, worlds, samples), where `measure(ranks, samples)` returns simulated times."""

    def measure(ranks: int, samples: int) -> float:
        asked = "measure(ranks, samples)"
        return timing(
            _positive_int(asked, "ranks", ranks), _positive_int(asked, "samples", samples)
        )

    return answer(measure, worlds, samples)


def _positive_int(call: str, name: str, value: Any) -> int:
    try:
        whole = int(value)
    except (TypeError, ValueError):
        raise ValueError(f"{call}: {name} must be an integer, not {value!r:.60}.") from None
    if whole != value or whole < 1:
        raise ValueError(f"{call}: {name} must be an integer of at least 1, not {value!r:.60}.")
    return whole
