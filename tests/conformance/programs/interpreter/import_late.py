"""A module of the standard library is imported within main, for the first time."""


def main(rank, world_size):
    import colorsys
    import sched

    return colorsys.rgb_to_hsv(1, 0, 0), sched.__name__
