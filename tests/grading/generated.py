"""Generate a class with known points from stored right, wrong and hostile answers for all notebooks."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from helpers.checks.kinds import Kind
from helpers.checks.registry import exercises, get
from tests.grading.notebooks import IMPORTS, write_notebook
from tests.submission_files import Sample, all_samples

_HOSTILE = (
    "import os\nos.kill(os.getppid(), 9)",
    "import sys\nsys.setrecursionlimit(10**6)",
    "open('/tmp/left-behind', 'w').write('x' * 1000)",
    "import torch\ntorch.equal = torch.allclose = lambda *a, **k: True",
)
"""Cells next to answers. No answer needs them, so none of them runs."""
_HOSTILE_ANSWERS = (
    "import os\ndef {name}(*args):\n    os._exit(0)",
    "import os, signal\ndef {name}(*args):\n    os.kill(os.getppid(), signal.SIGKILL)",
    "def {name}(*args):\n    raise SystemExit(0)",
    "def {name}(*args):\n    while True:\n        print('x' * 100_000)",
    "def {name}(*args):\n    return [0] * (1 << 33)",
    "import os\ndef {name}(*args):\n    os.write(3, b'\\x0c' + bytes(8))\n    return args",
    "class Same_{name}:\n    def __eq__(self, other):\n        return True\n"
    "def {name}(*args):\n    return Same_{name}()",
)


@dataclass
class Expected:
    """The expected results of one submission. passes: whether each attempted exercise passes."""

    learner: str
    notebook: str
    passes: dict[str, bool] = field(default_factory=dict)
    readable: bool = True


def make_class(folder: Path, count: int, seed: int = 1) -> list[Expected]:
    """Write `count` submissions below `folder`, one in ten of which is not a notebook."""
    rng = random.Random(seed)
    notebooks = sorted({exercise.notebook for exercise in exercises().values()})
    samples = all_samples()
    made = []
    for number in range(count):
        notebook = notebooks[number % len(notebooks)]
        expected = Expected(f"learner{number:03}", notebook)
        path = folder / expected.learner / f"{notebook}.ipynb"
        if rng.random() < 0.1:
            expected.readable = False
            path.parent.mkdir(parents=True)
            path.write_text(rng.choice(("", "{", '{"cells": {}}', "[[]]")))
        else:
            chosen = list(_chosen(rng, [s for s in samples if s.notebook == notebook]))
            expected.passes = {sample.exercise: sample.right for sample in chosen}
            cells = [sample.source for sample in chosen]
            cells.insert(rng.randrange(len(cells) + 1), rng.choice(_HOSTILE))
            write_notebook(path, *cells)
        made.append(expected)
    return made


def _chosen(rng: random.Random, samples: list[Sample]) -> Iterator[Sample]:
    """Choose an answer for each exercise, such that none binds a name needed by another."""
    bound = _names(IMPORTS)
    tasks = {sample.exercise for sample in samples}
    solved: set[str] = set()
    for name in dict.fromkeys(sample.exercise for sample in samples):
        if get(name).kind is Kind.RANKS and rng.random() < 0.1:
            source = rng.choice(_HOSTILE_ANSWERS).format(name=name)
            bound |= _names(source)
            yield Sample(name, samples[0].notebook, False, "hostile", source)
            continue
        right = rng.random() < 0.6
        fitting = [s for s in samples if s.exercise == name and s.right is right]
        rng.shuffle(fitting)
        for sample in fitting:
            names = _names(sample.source) - {"torch", "dist"}
            # an answer that calls this learner's other answers is right only if these are right
            called = _read(sample.source) & tasks - {name}
            is_slow = sample.outcome == "timed out"  # such answers take minutes
            if not (names & (bound | tasks - {name}) or called - solved or is_slow):
                bound |= names
                solved |= {name} if right else set()
                yield sample
                break


def _read(source: str) -> set[str]:
    """Return the names read in a cell."""
    return {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}


def _names(source: str) -> set[str]:
    """Return the names bound at a cell's top level."""
    found: set[str] = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {
                n.id for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name)
            }
    return found
