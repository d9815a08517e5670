"""A limit on open files that a rank sets is its own."""

import resource

FAILS = "OSError"


def main(rank, world_size):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    kept = [open("/dev/null") for _ in range(100)]
    return len(kept)
