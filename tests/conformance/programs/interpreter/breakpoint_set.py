"""breakpoint() with PYTHONBREAKPOINT=0 does nothing."""

import os


def main(rank, world_size):
    os.environ["PYTHONBREAKPOINT"] = "0"
    breakpoint()
    return "went on"
