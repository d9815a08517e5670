"""World sizes and rules of the exercises of notebook 02."""

from __future__ import annotations

from helpers.checks.author import *
from helpers.checks.rules_transfers import EachIsWaitedFor

SIZES = (2, 3, 4, 5, 6, 7, 8)
TRANSFERS = (OnlyCalls(("send", "recv")), EachIsWaitedFor())
"""An `isend` also counts as a send, but the answer must then wait for it."""
