"""How an answer is tried."""

from __future__ import annotations

from enum import Enum


class Kind(Enum):
    """How an answer is tried.

    RANKS: a function, called as f(rank, world_size, *given) on each rank.
    MODULE: a class or function, driven on each rank by the exercise's own driver.
    LOCAL: a pure function, called as f(*given) once for each case, in one process.
    SCRIPT: functions from which the check composes a file that torchrun or mpiexec runs.
    MEASUREMENT: a function that is handed `measure`; the launching process answers each timing.
    JUDGEMENT: a function that answers questions about a generated scenario.
    """

    RANKS = "ranks"
    MODULE = "module"
    LOCAL = "local"
    SCRIPT = "script"
    MEASUREMENT = "measurement"
    JUDGEMENT = "judgement"

    @property
    def is_hard(self) -> bool:
        """The world of its answers takes every liberty that it has (`hard.py`)."""
        # scripts run as they would anywhere; the others do not communicate
        return self in {Kind.RANKS, Kind.MODULE}

    @property
    def is_alone(self) -> bool:
        """One process calls the answer; there is no group."""
        return self not in {Kind.RANKS, Kind.MODULE}
