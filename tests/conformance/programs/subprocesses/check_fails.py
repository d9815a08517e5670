"""check=True raises where the child fails."""

import subprocess

FAILS = "CalledProcessError"


def main(rank, world_size):
    subprocess.run(["sh", "-c", f"exit {rank}"], check=True)
