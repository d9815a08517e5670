"""A list at module level that functions fill."""

log = []


def note(text):
    log.append(text)


def main(rank, world_size):
    note("begin")
    note(f"rank {rank}")
    return log
