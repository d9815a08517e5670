"""Find random states seeded by a cell, so that each rank starts with the same numbers.

A new process seeds its generators from the system, so draws differ from rank to rank. But if the module level
of a script calls `torch.manual_seed(0)`, each rank runs that line, and all start with the same numbers. To
find out which case applies here, a seeded generator must be distinguished from a generator that has only been
used for drawing. torch's seed can be read. The states of `random` and numpy are followed from draw to draw.
Following them must begin before a cell can seed them, so a kernel that imports the course also imports
numpy.random.

Only a limited number of draws can be followed. Beyond this number, the cells' calls are used: if none of
these calls can seed, the generator counts as unseeded.
"""

from __future__ import annotations

import random
import struct
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

# By default, torch's seed has 64 random bits, so about one new process in half a million has a smaller seed.
_MAX_CHOSEN_SEED = 1 << 45
_RESTORE_METHODS = frozenset({"setstate", "set_state"})
_STATE_WORDS = 624
# Number of blocks of 624 words through which a generator is followed, which is enough for six million draws
# between two cells. Following all of them takes 0.1 s, once.
_MAX_BLOCKS = 10_000

_StateWords = tuple[int, ...]


class _TrackedGenerator:
    """A Mersenne Twister of this process, followed since it was first read."""

    def __init__(self, read: Callable[[], Any], words: Callable[[Any], _StateWords]) -> None:
        self._read, self._words = read, words
        self._last: Any = None
        self.seeded = False

    def update(self) -> None:
        """Read the generator's state, and check whether it can be the result of draws alone."""
        last, self._last = self._last, self._read()
        if last is not None and last != self._last and not self.seeded:
            self.seeded = not _is_reachable(self._words(last), self._words(self._last))


def _is_reachable(start: _StateWords, end: _StateWords) -> bool:
    """Return whether draws alone lead a Mersenne Twister from one block of words to another."""
    twister = random.Random()
    twister.setstate((3, (*start, _STATE_WORDS), None))
    for _ in range(_MAX_BLOCKS):
        twister.getrandbits(32 * _STATE_WORDS)
        if twister.getstate()[1][:-1] == end:
            return True
    return False


def _numpy_key() -> bytes:
    state = sys.modules["numpy.random"].get_state(legacy=False)
    return bytes(state["state"]["key"].data)


_GENERATORS = {
    "random": _TrackedGenerator(lambda: random.getstate()[1][:-1], tuple),
    "numpy.random": _TrackedGenerator(
        _numpy_key, lambda key: struct.unpack(f"{_STATE_WORDS}I", key)
    ),
}


def track_generators() -> None:
    """Read the generators' states. Must be called at the start of each cell and before a launch."""
    for module, generator in _GENERATORS.items():
        if module in sys.modules:
            generator.update()


def seeded_states(called_functions: Sequence[Any], call_names: Iterable[str]) -> dict[str, Any]:
    """Return {module: state} for the generators seeded by this process's code.

    Args:
        called_functions: The functions called by the cells' code. They reveal seeds that were set before the
            first reading.
        call_names: The last words of all calls that cells and the learner's modules may have run.
    """
    track_generators()
    can_seed = any("seed" in word or word in _RESTORE_METHODS for word in call_names)
    states: dict[str, Any] = {}
    torch = sys.modules.get("torch")
    if torch is not None and torch.initial_seed() < _MAX_CHOSEN_SEED:
        states["torch"] = torch.initial_seed(), torch.get_rng_state()
    if (can_seed and _GENERATORS["random"].seeded) or random.seed in called_functions:
        states["random"] = random.getstate()
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None and (
        (can_seed and _GENERATORS["numpy.random"].seeded) or numpy_random.seed in called_functions
    ):
        states["numpy.random"] = numpy_random.get_state()
    return states


def generator_states() -> dict[str, Any]:
    """Return the states of all generators of this process, seeded or not."""
    torch, numpy_random = sys.modules.get("torch"), sys.modules.get("numpy.random")
    states: dict[str, Any] = {"random": random.getstate()}
    if torch is not None:
        states["torch"] = torch.initial_seed(), torch.get_rng_state()
    if numpy_random is not None:
        states["numpy.random"] = numpy_random.get_state()
    return states


def set_states(states: Mapping[str, Any]) -> None:
    """Set the states of this process's generators, and seed those of GPUs with torch's seed."""
    if "torch" in states:
        import torch

        torch.manual_seed(states["torch"][0])
    restore_states(states)


def restore_states(states: Mapping[str, Any]) -> None:
    """Set the states of this process's generators, except those of GPUs."""
    if "torch" in states:
        import torch

        torch.set_rng_state(states["torch"][1])
    if "random" in states:
        random.setstate(states["random"])
    if "numpy.random" in states:
        import numpy.random

        numpy.random.set_state(states["numpy.random"])


track_generators()
