"""resetwarnings at the top: the filters that Python begins with are gone."""

import warnings

SETS = True
warnings.resetwarnings()


def main(rank, world_size):
    return [kept for kept in warnings.filters if kept[2] is ImportWarning]
