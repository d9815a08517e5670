"""An imagined rank has the same calls, messages, names and memory as a real one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from packaging.version import Version
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from helpers import (
    LaunchError,
    RankDied,
    RankFailed,
    RankTimeout,
    Run,
    imagine,
    launch,
    timeline,
    traffic,
)
from helpers.imagined.functional import FUNCTIONAL_OPS
from helpers.imagined.imagine import MAX_RANKS
from helpers.views.drawing import Drawing, Word
from tests.imagined.programs import PROGRAMS

# Ops of torch's functional collectives that only compiled programs call.
COMPILED = {"batch_p2p_ops", "irecv", "isend"}


def calls(run: Run, rank: int) -> list[tuple[Any, ...]]:
    """Return everything recorded about a rank's calls except times."""
    return [
        (e.op, e.call, e.group_ranks, e.peer, e.root, e.tag, e.nbytes, e.dtype, e.shapes, e.reduce_op,
         e.asynchronous, e.where)
        for e in run.trace.of(rank)
    ]  # fmt: skip


def compare(program: Callable[[int, int], Any], world_size: int) -> None:
    ranks = sorted({*range(min(world_size, MAX_RANKS - 1)), world_size - 1})
    real = launch(program, world_size, timeout=300)
    imagined = imagine(program, world_size, ranks, real_tensors=PROGRAMS[program], timeout=300)
    for rank in ranks:
        assert calls(imagined, rank) == calls(real, rank), rank
        assert imagined.values[rank] == real.values[rank], rank


# Programs whose ranks import much, or send many messages.
SLOW = {"fsdp2", "hsdp", "tp"}


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "program",
    [
        pytest.param(p, id=p.__name__, marks=[pytest.mark.extended] if p.__name__ in SLOW else [])
        for p in PROGRAMS
    ],
)
def test_imagined_ranks_match_real_ranks(program: Callable[[int, int], Any]) -> None:
    compare(program, 4)


def test_records_every_functional_collective_of_torch() -> None:
    schemas = [
        s for s in torch._C._jit_get_all_schemas() if s.name.startswith("_c10d_functional::")
    ]
    of_groups = [s for s in schemas if any("group" in a.name for a in s.arguments)]
    assert {s.name.partition("::")[2] for s in of_groups} - COMPILED == set(FUNCTIONAL_OPS)


@pytest.mark.parametrize("op", ["sum", dist.ReduceOp.SUM], ids=["a name", "a ReduceOp"])
def test_functional_sum_accepts_name_or_reduceop(op: Any) -> None:
    if not isinstance(op, str) and Version(torch.__version__) < Version("2.15"):
        pytest.skip("torch takes a ReduceOp from 2.15 on")

    def sums(rank: int, world_size: int) -> None:
        funcol.all_reduce(torch.ones(3), op, dist.group.WORLD).sum()

    (event,) = imagine(sums, 4).trace.of(0)
    assert (event.op, event.reduce_op, event.nbytes) == ("all_reduce", "SUM", 12)


@pytest.mark.soak
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
@pytest.mark.parametrize("world_size", [1, 2, 3, 8, 32, 64])
def test_imagined_ranks_match_large_real_worlds(
    program: Callable[[int, int], Any], world_size: int
) -> None:
    compare(program, world_size)


def ring(rank: int, world_size: int) -> dict[str, Any]:
    x = torch.ones(2, 3)
    if rank > 0:
        dist.recv(x, rank - 1)
    dist.send(x, (rank + 1) % world_size)
    dist.all_reduce(x)
    print("rank", rank)
    return {"count": 3, "local": int(os.environ["LOCAL_RANK"]), "x": x}


@pytest.mark.extended
def test_runs_and_shows_only_requested_ranks() -> None:
    run = imagine(ring, 1024, [517, 0])
    described = "tensor of 2 x 3, float32 (no values)"
    assert run.values[517] == {"x": described, "count": 3, "local": 5}
    assert run.values[516] is None and run.output[517] == "rank 517\n"
    assert str(run).splitlines() == [
        "rank   0 | rank 0",
        f"rank   0 → {run.values[0]}",
        "rank 517 | rank 517",
        f"rank 517 → {run.values[517]}",
        "note: ranks 0, 517 of 1,024, imagined: no values, no times",
    ]
    assert timeline(run).text.splitlines() == [
        "timeline of 2 of 1,024 ranks (imagined: steps, not times): 2 messages, 1 all_reduce",
        "rank    0: send→1, all_reduce",
        "rank  517: recv←516, send→518, all_reduce",
    ]
    with pytest.raises(ValueError, match="traffic draws all ranks of a world"):
        traffic(run)


@pytest.mark.extended
def test_pictures_mark_steps_as_untimed() -> None:
    run = imagine(ring, 1024, [0, 517])
    drawing = timeline(run).figure
    assert isinstance(drawing, Drawing)
    words = {mark.text for mark in (*drawing.marks, *drawing.fixed) if isinstance(mark, Word)}
    assert {"rank 0", "rank 517", "imagined: steps in order, no times"} <= words
    assert not any(word.endswith(("ms", "µs")) for word in words)
    assert timeline(run).html().startswith("<img")
    assert {e.end_ns for e in run.trace} <= set(range(20))  # steps, the same from run to run


@pytest.mark.extended
def test_imagined_large_model_needs_no_memory() -> None:
    def shards(rank: int, world_size: int) -> int:
        model = torch.nn.Linear(1 << 20, 1 << 20, bias=False)  # 4 TB
        fully_shard(model)
        model(torch.randn(2, 1 << 20)).sum().backward()
        return sum(p.to_local().numel() for p in model.parameters())

    run = imagine(shards, 1024, [1023])
    assert run.values[1023] == (1 << 40) // 1024
    assert [e.nbytes for e in run.trace.of(1023)] == [4 << 30, 4 << 40]


@pytest.mark.parametrize(
    "needs_a_value",
    [
        lambda rank, world_size: torch.ones(3).sum().item(),
        lambda rank, world_size: bool(torch.randn(1) > 0),
        lambda rank, world_size: torch.randn(4).nonzero(),
        lambda rank, world_size: torch.ones(3).numpy(),
        lambda rank, world_size: DistributedDataParallel(torch.nn.Linear(2, 2)),
        lambda rank, world_size: dist.all_gather_object([None] * world_size, rank),
    ],
    ids=["item", "if", "nonzero", "numpy", "DDP", "objects"],
)
def test_missing_value_suggests_real_tensors(needs_a_value: Callable[[int, int], Any]) -> None:
    with pytest.raises(RankFailed, match="rank 7 raised NoValues.*real_tensors=True") as failed:
        imagine(needs_a_value, 16, [7])
    assert failed.value.rank == 7 and failed.value.error.frames
    imagine(lambda *given: str(needs_a_value(*given)), 16, [7], real_tensors=True)


def test_failures_report_imagined_rank() -> None:
    def fails(rank: int, world_size: int) -> None:
        if rank == 517:
            raise ValueError("no")

    def dies(rank: int, world_size: int) -> None:
        os._exit(3 if rank == 517 else 0)

    with pytest.raises(RankFailed, match="rank 517 raised ValueError: no") as failed:
        imagine(fails, 1024, [0, 517])
    assert failed.value.run is not None and failed.value.run.world_size == 1024
    with pytest.raises(RankDied, match="rank 517 exited with code 3"):
        imagine(dies, 1024, [517])
    with pytest.raises(RankTimeout, match="rank 517"):
        imagine(lambda rank, world_size: time.sleep(60), 1024, [517], timeout=0.5)


@pytest.mark.parametrize(
    ("world_size", "ranks", "said"),
    [
        (8, [8], "rank 8 is not in a world of 8"),
        (8, [-1], "rank -1 is not in a world of 8"),
        (8, [1, 1], "different ranks"),
        (8, [], "1 to 16 different ranks"),
        (0, [0], "whole number from 1"),
        ("8", [0], "whole number from 1"),
        (64, list(range(17)), "got 17"),
    ],
)
def test_rejects_impossible_worlds(world_size: Any, ranks: Any, said: str) -> None:
    with pytest.raises(LaunchError, match=said):
        imagine(ring, world_size, ranks)
    with pytest.raises(LaunchError, match=r"Write def"):
        imagine(lambda: None, 8)
