"""__name__ of a script that torchrun runs."""

LIKE = "torchrun"


def main(rank, world_size):
    return __name__, main.__module__
