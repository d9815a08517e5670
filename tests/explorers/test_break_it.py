"""Break a run in each possible way, on real ranks."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist

from helpers.explorers.break_it import NO_CALL, FaultExplorer, Faults, break_it
from helpers.ranks.failures import Deadlock


def ring(rank: int, world_size: int, start: int) -> int:
    token = torch.tensor([start])
    if rank == 0:
        dist.send(token, dst=1)
        dist.recv(token, src=world_size - 1)
    else:
        dist.recv(token, src=rank - 1)
        dist.send(token, dst=(rank + 1) % world_size)
    return int(token)


def exchange(rank: int, world_size: int) -> None:
    mine, box = torch.ones(2), torch.empty(2)
    works = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, mine, 1 - rank), dist.P2POp(dist.irecv, box, 1 - rank)]
    )
    for work in works:
        work.wait()
    work = dist.all_reduce(box, async_op=True)
    assert work is not None
    work.wait()
    dist.all_gather_object([None, None], rank)


@pytest.fixture
def broken() -> FaultExplorer:
    return break_it(ring, 3, args=(7,))


@pytest.mark.extended
def test_function_without_faults_runs_unchanged(broken: FaultExplorer) -> None:
    run = broken.run(broken.start)
    assert run.failure is None
    assert run.values == [["send→1", "recv"], ["recv", "send→2"], ["recv", "send→0"]]
    assert broken.draw(broken.start, run).text.splitlines()[1:] == [
        "rank 0: send→1, recv←2",
        "rank 1: recv←0, send→2",
        "rank 2: recv←1, send→0",
    ]
    assert all("test_break_it.py" in str(event.where) for event in run.trace)


def test_first_fault_omits_final_call(broken: FaultExplorer) -> None:
    assert repr(broken).splitlines()[1:] == [
        "rank 0: send→1, recv←2 (never finished)",
        "rank 1: recv←0, send→2",
        "rank 2: recv←1",
    ]
    assert broken.first_faults([["send→1"], None]) == broken.start, "of a run that failed"


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("faults", "line"),
    [
        (Faults(3, late_rank=1), "rank 1: [late], recv←0, send→2"),
        (Faults(3, slow_rank=2), "rank 1: recv←0, [slow link], send→2"),
    ],
)
def test_draws_delay_on_delayed_rank(broken: FaultExplorer, faults: Faults, line: str) -> None:
    run = broken.run(faults)
    assert run.failure is None
    assert line in broken.draw(faults, run).text.splitlines()


@pytest.mark.extended
def test_rank_waits_for_omitted_call(broken: FaultExplorer) -> None:
    faults = Faults(3, dropped_call=(1, 1))
    run = broken.run(faults)
    assert isinstance(run.failure, Deadlock)
    assert run.failure.diagnosis.waits[2].waits_for == (1,)
    assert [event.op for event in run.trace.of(1)] == ["recv"]


@pytest.mark.extended
def test_counts_batches_and_object_collectives_once() -> None:
    changed = FaultExplorer(exchange, Faults(2))
    run = changed.run(changed.start)
    assert run.failure is None
    assert run.values[0] == ["isend→1", "irecv", "all_reduce", "all_gather_object"]
    alone = changed.run(Faults(2, dropped_call=(1, 2)))
    assert isinstance(alone.failure, Deadlock), (
        "a Work of nothing is waited for, and rank 0 is left"
    )


@pytest.mark.extended
def test_menus_rerun_function(broken: FaultExplorer) -> None:
    shown: list[str] = []

    def show(faults: Faults) -> None:
        shown.append(broken.draw(faults, broken.run(faults)).text)

    menus, first = broken.menus(show)
    ranks, late_rank, _, dropped_call = menus.children
    assert dropped_call.value == first.dropped_call == (2, 1) and not shown
    late_rank.value = 2
    assert "rank 2: [late], recv←1" in shown[-1]
    dropped_call.value = (0, 0)
    assert "3 recvs without a send" in shown[-1]
    ranks.value = 2
    assert (late_rank.value, dropped_call.value) == (-1, NO_CALL)
    assert shown[-1].startswith("timeline of 2 ranks: 2 messages")
    assert len(shown) == 3
    menus.close_all()


def twenty(rank: int, world_size: int) -> None:
    for _ in range(20):
        dist.all_reduce(torch.ones(1))


@pytest.mark.extended
def test_menu_offers_last_calls_of_ranks() -> None:
    menus, _ = break_it(twenty, 2).menus(lambda faults: None)
    *_, dropped_call = menus.children
    words = [name for name, _ in dropped_call.options]
    assert words[:2] == ["nothing", "rank 0, call 15: all_reduce"]
    assert words[-1] == "rank 1, call 20: all_reduce" and len(words) == 13
    menus.close_all()


def test_refuses_more_ranks_than_page_shows() -> None:
    with pytest.raises(ValueError, match="on 1 to 8 ranks, not on 9"):
        break_it(ring, 9)


def raises_on_one_rank(rank: int, world_size: int) -> None:
    if rank == 1:
        raise ValueError("oops")
    dist.barrier()


def raises_everywhere(rank: int, world_size: int) -> None:
    raise KeyError("typo")


def hangs(rank: int, world_size: int) -> None:
    dist.recv(torch.ones(1), 1 - rank)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("fn", "says"),
    [
        (raises_on_one_rank, "RankFailed: rank 1 raised ValueError: oops"),
        (raises_everywhere, "RankFailed: rank 0 raised KeyError: 'typo'"),
        (hangs, "Deadlock: A cycle of receives"),
    ],
)
def test_shows_exception_in_text(fn: Callable[..., object], says: str) -> None:
    text = repr(break_it(fn, 2))
    assert says in text and "test_break_it.py, line" in text
