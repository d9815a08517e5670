"""A seeded generator is distinguished from a generator that only made draws."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import random
import numpy.random
from helpers.ranks.seeds import seeded_states
import torch
{lines}
print(sorted(seeded_states((), {words!r})))
"""


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("lines", "seeded"),
    [
        ("", []),
        pytest.param(
            "random.random(), numpy.random.rand(), torch.rand(1)", [], marks=pytest.mark.extended
        ),
        pytest.param(
            "[random.random() for _ in range(100_000)]; numpy.random.rand(100_000)",
            [],
            marks=pytest.mark.extended,
        ),
        pytest.param("random.seed(1)", ["random"], marks=pytest.mark.extended),
        pytest.param(
            "numpy.random.seed(1); numpy.random.rand(1000)",
            ["numpy.random"],
            marks=pytest.mark.extended,
        ),
        ("torch.manual_seed(0); torch.rand(1000)", ["torch"]),
        pytest.param(
            "torch.manual_seed(20_240_115_123_000)", ["torch"], marks=pytest.mark.extended
        ),
        ("torch.manual_seed(0); torch.seed()", []),
        pytest.param(
            "random.random(); random.seed(1); random.random()",
            ["random"],
            marks=pytest.mark.extended,
        ),
        pytest.param("random.setstate(random.getstate())", [], marks=pytest.mark.extended),
    ],
)
def test_recognizes_seeded_generators(lines: str, seeded: list[str]) -> None:
    assert _seeded(lines, ["seed"]) == f"{seeded}\n"


@pytest.mark.extended
def test_many_draws_do_not_imply_seed() -> None:
    """Drawing a large array is quick. Under torchrun, each rank would have drawn different numbers."""
    lines = "numpy.random.rand(4000, 4000)"
    assert _seeded(lines, ["rand"]) == "[]\n"
    assert _seeded("numpy.random.seed(1);" + lines, ["rand", "seed"]) == "['numpy.random']\n"


def _seeded(lines: str, words: list[str]) -> str:
    program = [sys.executable, "-c", PROGRAM.format(lines=lines, words=words)]
    return subprocess.run(program, capture_output=True, text=True, timeout=120, check=True).stdout
