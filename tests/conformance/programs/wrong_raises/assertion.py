"""An assert with a message."""

FAILS = "AssertionError"


def main(rank, world_size):
    assert rank == 0, f"rank {rank} should not be here"
