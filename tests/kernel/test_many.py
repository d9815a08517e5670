"""A room of learners pressing Run at the same time: many kernels on one machine."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import pytest

from helpers.answers.data import Answer
from helpers.answers.reader import read_answers
from helpers.course.workspace import find_workspace
from tests.kernel.session import Kernel

KERNELS = 30
LONG_S = 600.0
"""A generous time limit: thirty kernels importing torch on a few cores take minutes, which is not tested."""
IMPORTS = "from helpers import *\nimport torch, torch.distributed as dist"
LAUNCH = """
def total(rank, world_size):
    x = torch.ones(1) * rank
    dist.all_reduce(x)
    return x.item()

launch(total, 2).values"""
CHECK = "print(check(average_gradients))"


@pytest.fixture
def kernels() -> Iterator[list[Kernel]]:
    """Yield many kernels that live at the same time, and check the end of each."""
    with contextlib.ExitStack() as stack:
        made = []
        for _ in range(KERNELS):
            made.append(Kernel())
            stack.callback(made[-1].close)
        yield made


@pytest.mark.soak
@pytest.mark.timeout(2400)
def test_thirty_kernels_launch_and_check_simultaneously(kernels: list[Kernel]) -> None:
    file = find_workspace().root / "solutions" / "08_synchronous_sgd.ipynb"
    answer = read_answers(file, ["average_gradients"])["average_gradients"]
    assert isinstance(answer, Answer)
    _in_all(kernels, "imports", IMPORTS)
    assert _in_all(kernels, "launch", LAUNCH) == ["[1.0, 1.0]\n"] * KERNELS
    _in_all(kernels, "the answer's cell", answer.source)
    assert all("passed (" in text for text in _in_all(kernels, "check", CHECK))
    print(f"memory of all: {sum(map(_megabytes, kernels)) / 1000:.1f} GB (proportional set size)")
    for kernel in kernels:
        assert len(kernel.servers()) == 1 and not kernel.ranks()


def _in_all(kernels: list[Kernel], name: str, cell: str) -> list[str]:
    """Run a cell in all kernels at once, and return the displayed text of each."""
    began, texts = time.monotonic(), []
    for kernel, request in [(kernel, kernel.begin(cell)) for kernel in kernels]:
        done = kernel.wait(request, LONG_S)
        assert done.status == "ok", f"{done.error}: {done.message}"
        texts.append(done.text)
    print(f"\n{name}: all done after {time.monotonic() - began:.1f} s")
    return texts


def _megabytes(kernel: Kernel) -> float:
    return sum(process.memory_full_info().pss for process in kernel.processes()) / 1e6
