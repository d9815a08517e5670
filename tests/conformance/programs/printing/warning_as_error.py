"""Warnings made errors."""

import warnings

FAILS = "DeprecationWarning"


def main(rank, world_size):
    warnings.simplefilter("error")
    warnings.warn("do not use this", DeprecationWarning, stacklevel=1)
