"""cProfile within main."""

import cProfile
import pstats


def work(n):
    return sum(range(n))


def main(rank, world_size):
    profile = cProfile.Profile()
    value = profile.runcall(work, 100)
    return value, any(name == "work" for _, _, name in pstats.Stats(profile).stats)
