"""What exercises of notebook 02 share: which worlds they are tried on, and the rules for all of them."""

from __future__ import annotations

from helpers.checks.author import *
from helpers.checks.rules_transfers import EachIsWaitedFor

SIZES = (2, 3, 4, 5, 6, 7, 8)
TRANSFERS = (OnlyCalls(("send", "recv")), EachIsWaitedFor())
"""A send by `isend` is one, too; then somebody has to wait for it."""
