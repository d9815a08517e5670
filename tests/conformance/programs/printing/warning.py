"""A warning of one's own is shown once for each line of code."""

import warnings


def main(rank, world_size):
    for _ in range(3):
        warnings.warn("this is old", UserWarning, stacklevel=1)
    warnings.warn("this is another", RuntimeWarning, stacklevel=1)
