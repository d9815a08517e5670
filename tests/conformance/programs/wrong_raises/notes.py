"""An error with notes."""

FAILS = "ValueError"


def main(rank, world_size):
    error = ValueError("wrong batch")
    error.add_note(f"seen on rank {rank}")
    error.add_note("look at the loader")
    raise error
