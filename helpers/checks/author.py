"""All names needed in an exercise's file: `from helpers.checks.author import Case, Draw, Exercise, ...`."""

from helpers.checks.case import AllRanks, Case, Finding, Measured, PerRank
from helpers.checks.compare import difference, same
from helpers.checks.draw import FLOATS, INTEGERS, SUMMED, Draw
from helpers.checks.exercise import Exercise
from helpers.checks.failure_advice import CrashAdvice, HangAdvice
from helpers.checks.kinds import Kind
from helpers.checks.named_parts import NamedParts, Parts, largest
from helpers.checks.right_values import Reference
from helpers.checks.rules import Calls, OnlyCalls, Order, Peers, Predicate
from helpers.checks.rules_collectives import Root, WaitsForAll
from helpers.ranks.run import Run
from helpers.trace.events import Event, Trace
from helpers.trace.mismatch import at
from helpers.views.plain import plural

__all__ = [
    "FLOATS",
    "INTEGERS",
    "SUMMED",
    "AllRanks",
    "WaitsForAll",
    "NamedParts",
    "Calls",
    "Case",
    "Draw",
    "PerRank",
    "Event",
    "Exercise",
    "CrashAdvice",
    "Finding",
    "Predicate",
    "Kind",
    "Measured",
    "OnlyCalls",
    "Order",
    "Parts",
    "Peers",
    "Reference",
    "Root",
    "Run",
    "HangAdvice",
    "Trace",
    "at",
    "difference",
    "largest",
    "plural",
    "same",
]
