"""What goes to stderr is seen as well."""

import sys


def main(rank, world_size):
    print("to stdout", flush=True)
    print("to stderr", file=sys.stderr, flush=True)
    sys.stdout.write("written\n")
