"""The first difference between the ranks' calls is named, with both lines, not only the last wait."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from helpers.ranks.display import NoDisplay
from helpers.ranks.failures import Deadlock, RankDied
from helpers.ranks.launch_options import Caller, Options, Task
from helpers.ranks.launcher import connect, execute, launch
from helpers.ranks.run import RankFailure
from helpers.ranks.world import World
from helpers.trace.events import Trace

pytestmark = pytest.mark.usefixtures("preloaded")

Program = Callable[[int, int], object]


def one(size: int = 1) -> torch.Tensor:
    return torch.ones(size)


def a_call_too_many_at_the_start(rank: int, n: int) -> None:
    if rank == 0:
        dist.all_reduce(one())  # differs
    for _ in range(3):
        dist.all_reduce(one())  # differs


def a_call_too_many_before_one_of_another_kind(rank: int, n: int) -> None:
    if rank == 0:
        dist.all_reduce(one())  # differs
    dist.all_reduce(one())  # differs
    dist.broadcast(one(), 0)


def a_call_that_one_rank_skips(rank: int, n: int) -> None:
    dist.all_reduce(one())
    if rank != 2:
        dist.all_reduce(one())  # differs
    for _ in range(2):
        dist.all_reduce(one())  # differs


def a_call_too_many_after_a_branch_of_its_own(rank: int, n: int) -> None:
    if rank == 0:
        dist.all_reduce(one())
    else:
        dist.all_reduce(one())
    if rank == 0:
        dist.all_reduce(one())  # differs
    dist.all_reduce(one())  # differs


def logging_on_one_rank(rank: int, n: int) -> None:
    for step in range(4):
        dist.all_reduce(one())  # differs
        if rank == 0 and step % 2 == 0:
            dist.all_reduce(one())  # differs


def keys_that_differ(rank: int, n: int) -> None:
    for size in (4, 1, 3) if rank == 0 else (4, 3):
        dist.broadcast(one(size), 0)  # differs


def another_dtype(rank: int, n: int) -> None:
    dist.all_reduce(torch.ones(2, dtype=torch.float32 if rank else torch.int32))  # differs
    if rank == 0:
        dist.barrier()


def another_reduction(rank: int, n: int) -> None:
    dist.all_reduce(one(), op=dist.ReduceOp.MAX if rank else dist.ReduceOp.SUM)  # differs
    if rank == 0:
        dist.barrier()


def a_metric_within_join(rank: int, n: int) -> None:
    model = DDP(torch.nn.Linear(2, 1))
    with model.join():  # differs
        for _ in range(2 + 2 * rank):
            loss = model(torch.ones(1, 2)).sum()
            loss.backward()
            dist.all_reduce(loss.detach().reshape(1))  # differs


def in_a_group(rank: int, n: int) -> None:
    group = dist.new_group([1, 2])
    dist.all_reduce(one())
    if rank == 1:
        dist.all_reduce(one(), group=group)  # differs
    if rank:
        dist.all_reduce(one(), group=group)  # differs


def scattered_into_another_size(rank: int, n: int) -> None:
    parts = [one(2), one(2)] if rank == 0 else None
    dist.scatter(one(2 + rank), parts, src=0)  # differs
    if rank == 0:
        dist.barrier()


def parts_that_disagree(rank: int, n: int) -> None:
    give = [1, 3] if rank == 0 else [2, 2]
    dist.all_to_all_single(torch.empty(3), torch.arange(4.0), [1, 2], give)  # differs


DIFFERENT: dict[Program, int] = {
    a_call_too_many_at_the_start: 2,
    a_call_too_many_before_one_of_another_kind: 2,
    a_call_that_one_rank_skips: 3,
    a_call_too_many_after_a_branch_of_its_own: 2,
    logging_on_one_rank: 2,
    keys_that_differ: 2,
    another_dtype: 2,
    another_reduction: 2,
    a_metric_within_join: 2,
    in_a_group: 3,
    scattered_into_another_size: 2,
    parts_that_disagree: 2,
}


def marked(program: Program) -> set[int]:
    lines, first = inspect.getsourcelines(program)
    return {first + at for at, line in enumerate(lines) if line.endswith("# differs\n")}


def failure_of(program: Program, size: int) -> RankFailure | None:
    return launch(program, size, timeout=60, on_failure="return").failure


@pytest.mark.sample(3)
@pytest.mark.parametrize("program", DIFFERENT, ids=lambda program: program.__name__)
def test_reports_first_differing_calls(program: Program) -> None:
    failure = failure_of(program, DIFFERENT[program])
    if program is parts_that_disagree:
        assert isinstance(failure, RankDied), failure
        said = failure.advice
    else:
        assert isinstance(failure, Deadlock), failure
        said = failure.diagnosis.summary
    sentence = said.split(". ", 1)[0].split(").", 1)[0]
    assert {int(line) for line in re.findall(r"line (\d+)", sentence)} == marked(program), failure


def total(x: torch.Tensor) -> None:
    dist.all_reduce(x)


def calls_of_one_helper(rank: int, n: int) -> None:
    if rank == 0:
        total(one())  # differs
    for _ in range(2):
        total(one())  # differs


def sizes_of_one_helper(rank: int, n: int) -> None:
    total(one(3))  # differs
    if rank == 0:
        total(one(3))
    else:
        dist.barrier()


@pytest.mark.extended
def test_reports_callers_of_shared_helper() -> None:
    failure = failure_of(calls_of_one_helper, 2)
    assert isinstance(failure, Deadlock), failure
    sentence = failure.diagnosis.summary.split("). ", 1)[0]
    helper_line = inspect.getsourcelines(total)[1] + 1
    assert {int(line) for line in re.findall(r"line (\d+)", sentence)} == {
        helper_line,
        *marked(calls_of_one_helper),
    }, failure


@pytest.mark.extended
def test_shows_callers_of_last_call() -> None:
    failure = failure_of(sizes_of_one_helper, 2)
    line = inspect.getsourcelines(sizes_of_one_helper)[1] + 3
    assert f"called from line {line} in sizes_of_one_helper" in str(failure), failure
    assert str(failure).count("called from") == 1, failure


def branches_of_their_own(rank: int, n: int) -> None:
    for _ in range(3):
        if rank == 0:
            dist.all_reduce(one())
        else:
            dist.all_reduce(one())
    dist.all_reduce(one())
    if rank == 0:
        dist.all_reduce(one())


def branches_that_share_a_helper(rank: int, n: int) -> None:
    for _ in range(3):
        if rank == 0:
            total(one())
        else:
            total(one())
    if rank == 0:
        total(one())


def roles_that_take_turns(rank: int, n: int) -> None:
    for step in range(3):
        if (rank + step) % 2 == 0:
            dist.all_reduce(one())
        else:
            dist.all_reduce(one())
    if rank == 0:
        dist.barrier()


def objects_of_different_sizes(rank: int, n: int) -> None:
    dist.all_gather_object([None] * n, "x" * (10 + 100 * rank))
    some = ["y" * (1 + 50 * rank)]
    dist.broadcast_object_list(some, 1)
    dist.gather_object(rank * [1], [None] * n if rank == 0 else None)
    if rank == 0:
        dist.barrier()


def messages_and_calls(rank: int, n: int) -> None:
    dist.all_reduce(one())
    if rank == 0:
        dist.send(one(3), 1)
        dist.all_reduce(one())
    else:
        dist.recv(one(3), 0)


def parts_of_different_sizes(rank: int, n: int) -> None:
    give = [1, 3] if rank == 0 else [2, 1]
    take = [1, 2] if rank == 0 else [3, 1]
    dist.all_to_all_single(torch.empty(sum(take)), torch.ones(sum(give)), take, give)
    if rank == 0:
        dist.barrier()


RIGHT_UNTIL_ONE_LEFT = (
    branches_of_their_own,
    branches_that_share_a_helper,
    roles_that_take_turns,
    objects_of_different_sizes,
    messages_and_calls,
    parts_of_different_sizes,
)


@pytest.mark.sample(2)
@pytest.mark.parametrize("program", RIGHT_UNTIL_ONE_LEFT, ids=lambda program: program.__name__)
def test_does_not_report_allowed_differences(program: Program) -> None:
    failure = failure_of(program, 2)
    assert isinstance(failure, Deadlock), failure
    assert failure.diagnosis.kind == "rank_left", failure
    assert failure.diagnosis.summary.startswith("Rank 1 has returned"), failure


@contextmanager
def live_ranks(size: int) -> Iterator[Callable[[str, str], tuple[RankFailure | None, Trace]]]:
    """Run cells one after another on live ranks. Each run returns its failure and its trace."""
    server = connect()
    server.wait_until_ready()
    world = World(server, Options(size).resolve(), Caller())

    def run(source: str, file: str) -> tuple[RankFailure | None, Trace]:
        task = Task(source=source, file=file)
        failure = execute(world, task, [(b"",)] * size, 60, NoDisplay(), keep_alive=True)
        return failure, world.collector.trace()

    try:
        yield run
    finally:
        world.end()


def test_compares_call_from_earlier_cell() -> None:
    with live_ranks(2) as run:
        begins = "if rank == 0:\n    work = dist.all_reduce(torch.ones(1), async_op=True)\n"
        assert run(begins, "begins")[0] is None
        failure, trace = run("dist.all_reduce(torch.ones(1))\n", "continues")
    assert isinstance(failure, Deadlock), failure
    assert failure.diagnosis.kind == "mismatched_collectives"
    assert "begins, line 2" in failure.diagnosis.summary, failure
    assert "continues, line 1" in failure.diagnosis.summary, failure
    assert {event.where.file for event in trace if event.where} == {"continues"}


def test_later_cell_answers_earlier_call() -> None:
    with live_ranks(2) as run:
        assert (
            run(
                "if rank == 0:\n"
                "    work = dist.all_reduce(torch.ones(1), async_op=True)\n"
                "    sent = dist.isend(torch.ones(3), 1)\n",
                "begins",
            )[0]
            is None
        )
        answers = (
            "if rank == 0:\n    work.wait(); sent.wait()\n"
            "else:\n    dist.recv(torch.ones(3), 0); dist.all_reduce(torch.ones(1))\n"
        )
        failure, trace = run(answers, "answers")
        assert failure is None and not trace.dropped
        failure, _ = run("if rank == 0: dist.all_reduce(torch.ones(1))\n", "alone")
    assert isinstance(failure, Deadlock) and failure.diagnosis.kind == "rank_left", failure
