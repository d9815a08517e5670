"""Popen.communicate hands text to a child and takes its answer."""

import subprocess


def main(rank, world_size):
    pipe = subprocess.PIPE
    child = subprocess.Popen(["sort", "-r"], stdin=pipe, stdout=pipe, text=True)
    out, _ = child.communicate("a\nc\nb\n")
    return out.split(), child.returncode
