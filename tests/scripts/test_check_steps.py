"""`course run --check-steps`: silent faults, each with its line, and no alarm for intended differences."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from helpers.scripts.step_watch import _digest
from tests.scripts.shapes import in_this_process

START = """
import os, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = torch.nn.Linear(4, 20)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(rank + 1)
def backward(model=model):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).square().mean().backward()
"""


def findings(tmp_path: Path, text: str, steps: int = 4, ranks: int = 2) -> list[dict[str, object]]:
    script = tmp_path / "train.py"
    script.write_text(START + text)
    ending = in_this_process(script, ranks, (), "--check-steps", str(steps), "--json")
    data = json.loads(ending.output)
    assert data["outcome"] == "passed", data["failure"]
    assert ending.code == data["exit_code"] == (5 if data["findings"] else 0)
    return list(data["findings"])


def line_of(text: str, part: str) -> int:
    return next(i for i, line in enumerate((START + text).splitlines(), 1) if part in line)


FAULTS = {
    "never_reduced": "for _ in range(9):\n    backward()\n    optimizer.step()\n",
    "reduced_twice": "ddp = DDP(model)\nfor _ in range(9):\n    backward(ddp)\n"
    "    for p in model.parameters():\n        dist.all_reduce(p.grad)\n    optimizer.step()\n",
    "different_dtypes": "x = torch.ones(2, dtype=torch.int32 if rank else torch.float32)\n"
    "dist.all_reduce(x)\n",
    "different_start_never_reduced": "torch.nn.init.normal_(model.weight)\ndist.barrier()\n"
    "for _ in range(9):\n    backward()\n    optimizer.step()\n",
    "same_samples": "ddp = DDP(model)\ntorch.manual_seed(3)\nfor _ in range(9):\n"
    "    backward(ddp)\n    optimizer.step()\n",
}


@pytest.mark.parametrize("kind", FAULTS)
def test_finds_silent_fault(tmp_path: Path, kind: str) -> None:
    (finding,) = findings(tmp_path, FAULTS[kind])
    assert finding["kind"] == kind.removeprefix("different_start_")
    if kind == "reduced_twice":
        assert finding["line"] == line_of(FAULTS[kind], "dist.all_reduce(p.grad)")


INTENDED = {
    "averaged weights": "for step in range(9):\n    backward()\n    optimizer.step()\n"
    "    if step % 3 == 2:\n        for p in model.parameters():\n"
    "            dist.all_reduce(p.data, op=dist.ReduceOp.AVG)\n",
    "gradients in one tensor": "for _ in range(9):\n    backward()\n"
    "    flat = torch.cat([p.grad.flatten() for p in model.parameters()])\n"
    "    dist.all_reduce(flat, op=dist.ReduceOp.AVG)\n"
    "    for p, g in zip(model.parameters(), flat.split([80, 20])):\n"
    "        p.grad.copy_(g.view_as(p.grad))\n    optimizer.step()\n",
    "layers split by hand": "for _ in range(9):\n    optimizer.zero_grad()\n"
    "    y = model(torch.randn(8, 4))\n    total = y.detach().clone()\n    dist.all_reduce(total)\n"
    "    (y * total).mean().backward()\n    optimizer.step()\n",
    "the same samples again": "ddp = DDP(model)\nx = torch.ones(8, 4)\nfor _ in range(9):\n"
    "    optimizer.zero_grad()\n    ddp(x).sum().backward()\n    optimizer.step()\n",
    "a step of its own": "for _ in range(3):\n    backward()\n    for p in model.parameters():\n"
    "        dist.all_reduce(p.grad)\n        p.data -= 0.01 * p.grad\n",
    "different numbers of batches": "from torch.distributed.algorithms.join import Join\n"
    "ddp = DDP(model)\nwith Join([ddp]):\n    for _ in range(2 + rank):\n"
    "        backward(ddp)\n        optimizer.step()\n",
    "separate experiments": "torch.nn.init.normal_(model.weight)\nfor _ in range(9):\n"
    "    backward()\n    optimizer.step()\n",
    "constant inputs": "ddp = DDP(model)\nfor step in range(9):\n    optimizer.zero_grad()\n"
    "    ddp(torch.full((8, 4), step + 1.0)).sum().backward()\n    optimizer.step()\n",
    "blocks called one by one": "x = torch.randn(8, 4, generator=torch.Generator().manual_seed(1))\n"
    "ddp = DDP(model)\nfor _ in range(9):\n    optimizer.zero_grad()\n    ddp(x).sum().backward()\n"
    "    ddp(2 * x).sum().backward()\n    optimizer.step()\n",
    "one rank trains": "if rank == 0:\n    for _ in range(9):\n        backward()\n"
    "        optimizer.step()\ndist.barrier()\n",
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", INTENDED)
def test_intended_differences_raise_no_alarm(tmp_path: Path, name: str) -> None:
    assert findings(tmp_path, INTENDED[name]) == []


def test_script_stops_after_requested_steps(tmp_path: Path) -> None:
    text = (
        START + "for step in range(10**9):\n    backward(); optimizer.step(); print('step', step)\n"
    )
    (tmp_path / "train.py").write_text(text)
    ending = in_this_process(tmp_path / "train.py", 1, (), "--check-steps", "3")
    assert ending.output.splitlines() == [f"[rank 0] step {i}" for i in range(3)]
    assert (ending.code, ending.errors) == (0, "No silent fault found in 3 steps.\n")


@pytest.mark.parametrize(
    ("steps", "said"),
    [(0, ", but no optimizer took a step."), (2, " in 2 steps, the whole script.")],
)
def test_counts_steps_of_short_script(tmp_path: Path, steps: int, said: str) -> None:
    text = START + f"for step in range({steps}):\n    backward(); optimizer.step()\n"
    (tmp_path / "train.py").write_text(text)
    ending = in_this_process(tmp_path / "train.py", 1, (), "--check-steps", "3")
    assert (ending.code, ending.errors) == (0, f"No silent fault found{said}\n")


def test_failure_outranks_findings(tmp_path: Path) -> None:
    text = FAULTS["never_reduced"] + "raise ValueError('no')\n"
    (tmp_path / "train.py").write_text(START + text)
    ending = in_this_process(tmp_path / "train.py", 2, (), "--check-steps", "20")
    assert ending.code == 1
    assert "RankFailed" in ending.errors and "Silent fault" in ending.errors


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_ignores_rounding_differences(dtype: torch.dtype) -> None:
    tensor = torch.randn(1000).to(dtype)
    rounded = tensor * (1 + torch.finfo(dtype).eps * torch.randn(1000)).to(dtype)
    assert not _digest(tensor).differs(_digest(rounded))
    changed = tensor.clone()
    changed[500] += 1
    assert _digest(tensor).differs(_digest(changed))


def test_detects_different_opposite_values() -> None:
    assert _digest(torch.tensor([0.5, -0.5])).differs(_digest(torch.tensor([0.2, -0.2])))


def test_parameter_may_be_equal_by_chance(tmp_path: Path) -> None:
    """Adam's first step has one length for all gradients, so parameters may stay equal without reduction."""
    text = "scale = torch.nn.Parameter(torch.ones(1))\n"
    text += "optimizer = torch.optim.Adam([*model.parameters(), scale])\nfor _ in range(9):\n"
    text += "    backward(lambda x: scale * model(x))\n    optimizer.step()\n"
    (finding,) = findings(tmp_path, text)
    assert finding["kind"] == "never_reduced"
