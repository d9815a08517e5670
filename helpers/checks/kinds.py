"""Define the kinds of exercises, which determine how answers are tried."""

from __future__ import annotations

from enum import Enum


class Kind(Enum):
    """The way in which answers are tried.

    RANKS: a function, called as f(rank, world_size, *given) on each rank.
    MODULE: a class or function, driven on each rank by the exercise's driver.
    LOCAL: a pure function, called as f(*given) once for each case, in one process.
    SCRIPT: functions from which the check composes a file to be run by torchrun or mpiexec.
    MEASUREMENT: a function called with `measure`; the launching process replies to each request for a timing.
    JUDGEMENT: a function that answers questions about a generated scenario.
    """

    RANKS = "ranks"
    MODULE = "module"
    LOCAL = "local"
    SCRIPT = "script"
    MEASUREMENT = "measurement"
    JUDGEMENT = "judgement"

    @property
    def is_adversarial(self) -> bool:
        """Return whether answers run under adversarial timing (`adversarial.py`)."""
        # scripts run unchanged; the other kinds do not communicate
        return self in {Kind.RANKS, Kind.MODULE}

    @property
    def is_alone(self) -> bool:
        """Return whether one process calls the answer, without a group."""
        return self not in {Kind.RANKS, Kind.MODULE}
