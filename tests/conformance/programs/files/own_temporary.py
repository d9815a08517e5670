"""NamedTemporaryFile and TemporaryDirectory, each rank its own."""

import os
import tempfile


def main(rank, world_size):
    with tempfile.NamedTemporaryFile("w+") as file:
        file.write("abc")
        file.seek(0)
        text = file.read()
    with tempfile.TemporaryDirectory() as folder:
        there = os.path.isdir(folder)
    return text, there, os.path.exists(folder)
