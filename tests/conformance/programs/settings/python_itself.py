"""The module level sets what belongs to the process: limits, contexts, error handling of numpy."""

import decimal
import os
import sys
import warnings

import numpy as np

np.seterr(divide="raise")
np.set_printoptions(precision=2)
decimal.getcontext().prec = 5
sys.setrecursionlimit(4321)
os.umask(0o77)
warnings.filterwarnings("error", category=FutureWarning)


def main(rank, world_size):
    try:
        warnings.warn("old", FutureWarning, stacklevel=1)
        warned = "no error"
    except FutureWarning:
        warned = "an error"
    mask = os.umask(0)
    third = str(decimal.Decimal(1) / 3)
    return np.geterr()["divide"], str(np.array(1 / 3)), third, sys.getrecursionlimit(), mask, warned
