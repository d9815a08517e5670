"""Planted bugs are named with rank and line, and right scripts raise no alarm."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.scripts.bugs import BUGS, SILENT, Bug
from tests.scripts.shapes import SHAPES, Shape, in_this_process, under_torchrun

CHECK = ("--check-steps", "20")
NOT_FOUND = {"a loss divided by the world size under DDP"}
"""Not found, because its values are those of a smaller loss, which a script may want."""
QUICK_SHAPES = {"gan", "tensor_parallel", "own_module"}
QUICK_BUGS = {
    "metrics gathered on the main process only",
    "a scheduler that follows the local loss",
    "a buffer changed while isend runs",
    "a parameter that one rank freezes",
}


def _marked(name: str, is_quick: bool, value: object) -> object:
    marks = () if is_quick else (pytest.mark.extended,)
    return pytest.param(value, id=name.replace(" ", "-").replace("`", ""), marks=marks)


@pytest.mark.parametrize("shape", [_marked(s.name, s.name in QUICK_SHAPES, s) for s in SHAPES])
def test_right_script_raises_no_alarm(shape: Shape) -> None:
    script = shape.folder / f"{shape.name}.py"
    ending = in_this_process(script, shape.ranks, shape.args, *CHECK)
    assert ending.code == 0
    assert re.fullmatch(
        r"No silent fault found( in \d+ steps(, the whole script)?|, but no optimizer took a step)\.\n",
        ending.errors,
    )
    assert sum(ending.lines().values()) > 1


AVERAGE = """
import time
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    works = [
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG, async_op=True) for p in model.parameters()
    ]
    time.sleep(0.2)  # meanwhile, gloo divides the sums in place
    for work in works:
        work.wait()
    optimizer.step()
dist.destroy_process_group()
"""


def test_division_by_gloo_raises_no_alarm(tmp_path: Path) -> None:
    script = tmp_path / "average.py"
    script.write_text(AVERAGE)
    ending = in_this_process(script, 2, (), *CHECK)
    assert ending.code == 0, ending.errors


@pytest.mark.parametrize("bug", [_marked(b.about, b.about in QUICK_BUGS, b) for b in BUGS])
def test_reports_bug_with_line(bug: Bug, tmp_path: Path) -> None:
    script = tmp_path / f"{bug.script}.py"
    script.write_text(bug.text())
    options = CHECK if bug.kind == SILENT else ()
    ending = in_this_process(script, bug.shape.ranks, bug.shape.args, *options)
    if bug.about in NOT_FOUND:
        assert ending.code == 0, "now found: remove it from NOT_FOUND"
        return
    assert bug.is_named(ending) == (True, True), ending.text
    assert ending.code == (5 if bug.kind == SILENT else ending.code)
    assert ending.code


@pytest.mark.soak
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_script_prints_same_under_torchrun(shape: Shape) -> None:
    script = shape.folder / f"{shape.name}.py"
    plain = under_torchrun(script, shape.ranks, shape.args)
    ours = in_this_process(script, shape.ranks, shape.args)
    assert ours.code == plain.code
    assert ours.lines() - type(ours.lines())(plain.errors.splitlines()) == plain.lines()
