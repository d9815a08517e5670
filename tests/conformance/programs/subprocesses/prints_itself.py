"""What a child prints by itself is part of the rank's output."""

import subprocess


def main(rank, world_size):
    print("before", flush=True)
    subprocess.run(["echo", f"the child of rank {rank}"], check=True)
    print("after", flush=True)
