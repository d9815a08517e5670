"""Strict transfers make each race show, and leave a right programme alone."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from helpers.exercises.look_at_rod import jacobi, look_at_rod
from helpers.exercises.strict_transfers import Strict, strictly, watch_transfers
from helpers.ranks.failures import RankFailed
from helpers.ranks.launcher import launch


def exchange(rank: int, world_size: int, x: torch.Tensor, box: torch.Tensor) -> list[dist.Work]:
    return [dist.isend(x, 1 - rank), dist.irecv(box, 1 - rank)]


def before_and_after(rank: int, world_size: int, x: torch.Tensor) -> tuple[bool, torch.Tensor]:
    box = torch.zeros_like(x)
    works = exchange(rank, world_size, x, box)
    untouched = torch.equal(box, x) or torch.equal(box, torch.zeros_like(x))
    for work in reversed(works):
        work.wait()
    return untouched, box


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32, torch.uint8])
def test_a_receive_buffer_holds_nonsense_until_it_is_waited_for(dtype: torch.dtype) -> None:
    x = torch.tensor([3, 5, 7], dtype=dtype)
    for untouched, box in launch(strictly_called, 2, args=(before_and_after, x)).values:
        assert not untouched
        assert torch.equal(box, x)


def strictly_called(rank: int, world_size: int, programme: object, *inputs: object) -> object:
    assert callable(programme)
    return strictly(programme, rank, world_size, *inputs)


def changes_what_it_sends(rank: int, world_size: int) -> None:
    x = torch.ones(3)
    works = exchange(rank, world_size, x, torch.empty(3))
    x[rank] = 2
    for work in works:
        work.wait()


def receives_into_what_it_sends(rank: int, world_size: int) -> None:
    x = torch.full((2, 2), float(rank))
    for work in reversed(exchange(rank, world_size, x, x)):
        work.wait()


def waits_twice(rank: int, world_size: int) -> None:
    for work in exchange(rank, world_size, torch.ones(1), torch.empty(1)) * 2:
        work.wait()


@pytest.mark.parametrize(
    ("programme", "error"),
    [
        (changes_what_it_sends, "BufferInUse"),
        (receives_into_what_it_sends, "BufferShared"),
        (waits_twice, "WaitedTwice"),
    ],
)
def test_a_race_is_an_error_on_every_run(programme: object, error: str) -> None:
    run = launch(strictly_called, 2, args=(programme,), on_failure="return")
    assert isinstance(run.failure, RankFailed)
    assert run.failure.error.kind == error


def sends_nan_and_a_scalar(rank: int, world_size: int) -> float:
    nan, one, box = torch.full((2,), float("nan")), torch.tensor(1.0), torch.empty(2)
    scalar = torch.empty(())
    works = exchange(rank, world_size, nan, box) + exchange(rank, world_size, one, scalar)
    for work in works:
        work.wait()
    return float(scalar) + float(box.isnan().sum())


def blocks(rank: int, world_size: int) -> float:
    box = torch.zeros(1)
    if rank == 0:
        dist.send(torch.ones(1), 1)
        dist.recv(box)
    else:
        dist.recv(box, 0)
        dist.send(box + 1, 0)
    return float(box)


def test_a_right_programme_is_left_alone() -> None:
    run = launch(strictly_called, 2, args=(sends_nan_and_a_scalar,))
    assert run.values == [3.0, 3.0]
    assert launch(strictly_called, 2, args=(blocks,)).values == [2.0, 1.0]


def drops_its_send(rank: int, world_size: int) -> float:
    box, go = torch.zeros(1), torch.zeros(1)
    if rank == 0:
        dist.isend(torch.ones(1), 1)
        dist.recv(go, 1, tag=1)
    else:
        dist.send(go, 0, tag=1)
        dist.recv(box, 0)
    return float(box)


def test_a_send_that_nobody_waits_for_arrives_and_the_trace_tells() -> None:
    run = launch(strictly_called, 2, args=(drops_its_send,))
    assert run.values[1] == 1.0
    (dropped,) = [event for event in run.trace if event.call == "isend"]
    assert dropped.wait_ns is None


def restores(rank: int, world_size: int) -> bool:
    names = ("send", "recv")
    before = [getattr(dist.ProcessGroup, name) for name in names] + [dist.Work.wait]
    with watch_transfers(Strict()):
        during = [getattr(dist.ProcessGroup, name) for name in names] + [dist.Work.wait]
    after = [getattr(dist.ProcessGroup, name) for name in names] + [dist.Work.wait]
    return before == after and not set(map(id, before)) & set(map(id, during))


def test_nothing_stays_wrapped() -> None:
    assert launch(restores, 1).values == [True]


def rod_blocks() -> list[torch.Tensor]:
    rod = torch.tensor([1.0, 5.0, -3.0, 8.0, 2.0, 9.0, -4.0], dtype=torch.float64)
    return list(rod.split([3, 1, 3]))


def test_an_isolated_block_is_named() -> None:
    inputs = [(block, 50.0, -20.0, 3) for block in rod_blocks()]
    alone = [jacobi(*given) for given in inputs]
    assert "as if it were the whole rod" in look_at_rod(inputs, alone)


def test_a_result_that_no_usual_mistake_gives_is_followed_by_hand() -> None:
    inputs = [(block, 50.0, -20.0, 3) for block in rod_blocks()]
    blocks = [block for block, *_ in inputs]
    right = list(jacobi(torch.cat(blocks), 50.0, -20.0, 3).split([len(block) for block in blocks]))
    for rank, cell, words in ((1, 0, "the only cell of rank 1"), (2, -1, "and `right`")):
        wrong = [block.clone() for block in right]
        wrong[rank][cell] += 5
        assert words in look_at_rod(inputs, wrong)
    assert look_at_rod(inputs, [None, None, None]) == ""
