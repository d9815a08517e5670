"""Small notebooks like those of learners, for the tests of grading."""

from __future__ import annotations

import json
from pathlib import Path

RIGHT = """
def ping_pong(rank, world_size, ball, rounds):
    if rank > 1:
        return None
    for _ in range(rounds):
        if rank == 0:
            dist.send(ball, dst=1)
            dist.recv(ball, src=1)
        else:
            dist.recv(ball, src=0)
            ball += 1
            dist.send(ball, dst=0)
    return ball
"""
WRONG = RIGHT.replace("ball += 1", "ball += 2")
HANGS = RIGHT.replace("dist.send(ball, dst=1)", "pass")
IMPORTS = "import torch\nimport torch.distributed as dist\n"


def write_notebook(path: Path, *cells: str) -> Path:
    """Write a notebook of code cells, starting with the imports."""
    path.parent.mkdir(parents=True, exist_ok=True)
    code = [
        {
            "cell_type": "code",
            "id": f"c{number}",
            "metadata": {},
            "outputs": [],
            "execution_count": None,
            "source": source,
        }
        for number, source in enumerate((IMPORTS, *cells))
    ]
    notebook = {"cells": code, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(notebook))
    return path
