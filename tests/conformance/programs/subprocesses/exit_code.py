"""A child's exit code and its error stream."""

import subprocess


def main(rank, world_size):
    done = subprocess.run(["sh", "-c", "echo oh >&2; exit 7"], capture_output=True, text=True)
    return done.returncode, done.stderr
