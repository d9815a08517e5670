"""Everything that an exercise's file needs: `from helpers.checks.author import Case, Draw, Exercise, ...`."""

from helpers.checks.by_name import ByName, Parts, largest
from helpers.checks.case import AllRanks, Case, Each, Finding, Measured
from helpers.checks.compare import difference, same
from helpers.checks.draw import FLOATS, INTEGERS, SUMMED, Draw
from helpers.checks.exercise import Exercise
from helpers.checks.failed import Failed, Stuck
from helpers.checks.kinds import Kind
from helpers.checks.oracle import Reference
from helpers.checks.rules import Calls, Holds, OnlyCalls, Order, Peers
from helpers.checks.rules_collectives import Awaited, Root
from helpers.ranks.run import Run
from helpers.trace.events import Event, Trace
from helpers.trace.mismatch import at
from helpers.views.plain import plural

__all__ = [
    "FLOATS",
    "INTEGERS",
    "SUMMED",
    "AllRanks",
    "Awaited",
    "ByName",
    "Calls",
    "Case",
    "Draw",
    "Each",
    "Event",
    "Exercise",
    "Failed",
    "Finding",
    "Holds",
    "Kind",
    "Measured",
    "OnlyCalls",
    "Order",
    "Parts",
    "Peers",
    "Reference",
    "Root",
    "Run",
    "Stuck",
    "Trace",
    "at",
    "difference",
    "largest",
    "plural",
    "same",
]
