"""Diagnoses of each kind of deadlock, from stored worlds in which real ranks got stuck."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from helpers.trace.cause import CAUSES, Priority
from helpers.trace.causes import explanations
from helpers.trace.diagnosis import diagnose
from helpers.trace.events import Event, Place, Trace
from helpers.trace.joins import JoinCall
from helpers.trace.mismatch import describe_mismatch
from helpers.trace.rank_state import RankState
from helpers.trace.waits import can_complete, stuck_world
from tests.trace.deadlocks.record import (
    FOLDER,
    PROGRAMS,
    Stored,
    plain_world,
    stored,
)

EXPECTED = {
    "cycle_of_receives": (
        "cycle",
        "cycle",
        (0, 1, 2),
        "cycle of receives",
        "send before it receives",
    ),
    "cycle_of_sends": (
        "cycle",
        "cycle",
        (0, 1, 2),
        "cycle of sends",
        "receive first",
    ),
    "cycle_of_a_send_and_a_collective": (
        "cycle",
        "cycle",
        (0, 1),
        "A cycle: each rank",
        "reorder the calls",
    ),
    "left_before_a_collective": (
        "exited rank",
        "rank_left",
        (0,),
        "Rank 0 has returned, but rank 1 still waits for it in all_reduce",
        "All ranks of the group must call all_reduce, or none.",
    ),
    "left_before_a_recv": (
        "exited rank",
        "rank_left",
        (0,),
        "still waits for it in send",
        "make the recv",
    ),
    "new_group_without_a_rank": (
        "exit before setup",
        "rank_left",
        (1,),
        "still waits in new_group",
        "must call new_group",
    ),
    "another_collective": (
        "different calls",
        "mismatched_collectives",
        (0,),
        "rank 0 calls all_reduce",
        "the same collectives in the same order",
    ),
    "another_collective_after_one_of_a_subgroup": (
        "different calls",
        "mismatched_collectives",
        (3,),
        "rank 0 calls all_reduce",
        "the same collectives in the same order",
    ),
    "monitored_barrier_against_another_collective": (
        "different calls",
        "mismatched_collectives",
        (0, 1),
        "rank 0 calls monitored_barrier",
        "rank 1 must call it before its all_reduce (stuck_programs.py, line 469), or no rank",
    ),
    "different_roots": (
        "different calls",
        "mismatched_collectives",
        (0, 1),
        "broadcast with root 1",
        "the same root",
    ),
    "two_groups_crosswise": (
        "group order",
        "mismatched_collectives",
        (0, 1),
        "Two groups are used in different orders",
        "must use them in the same order",
    ),
    "different_shapes": (
        "different calls",
        "different_shapes",
        (0, 1, 2, 3),
        "of 4 float32",
        "same shape and dtype",
    ),
    "tags": (
        "tag mismatch",
        "unmatched",
        (0, 1),
        "receives with tag 2",
        "the same tag",
    ),
    "ring_that_receives_from_the_wrong_side": (
        "wrong peer",
        "unmatched",
        (0, 1),
        "rank 0 sends to rank 1",
        "receives from rank - 1",
    ),
    "new_group_during_a_receive": (
        "unmatched call",
        "unmatched",
        (1, 0),
        "Rank 1 waits in recv",
        "must call new_group",
    ),
    "isend_without_wait": (
        "missing wait",
        "never_waited",
        (0,),
        "waits in recv",
        "call its wait()",
    ),
    "skipped_backward": (
        "skipped backward",
        "skipped_backward",
        (1,),
        "rank 1 has not reduced them in this step",
        "With DDP, every rank must reduce",
    ),
    "loss_without_parameters": (
        "skipped backward",
        "skipped_backward",
        (1,),
        "rank 1 has not reduced them in this step",
        "its loss depends on no parameter of the model",
    ),
    "backward_that_communicates": (
        "skipped backward",
        "skipped_backward",
        (1,),
        "calls all_reduce (stuck_programs.py, line 370); rank 1 does not make this call",
        "backward pass of this program communicates",
    ),
    "call_too_many": (
        "different calls",
        "mismatched_collectives",
        (0, 1),
        "The ranks' calls first differ at call 1: rank 0 calls all_reduce (stuck_programs.py, line 358), "
        "while rank 1 calls all_reduce (stuck_programs.py, line 360). Rank 1 has returned",
        "must make each of them, or none",
    ),
    "gather_to_oneself": (
        "different calls",
        "mismatched_collectives",
        (0, 1),
        "rank 1 calls gather with root 1",
        "the same `dst` in reduce and gather",
    ),
    "local_group_after_another": (
        "local group",
        "stuck",
        (0, 1),
        "Ranks 0 and 1 wait for each other in new_group",
        "every member must have created the same number of groups before",
    ),
    "file_lock_around_a_barrier": (
        "file lock",
        "file_lock",
        (0,),
        "for a file lock held by rank 0, while rank 0 waits in barrier",
        "Release the lock before",
    ),
    "file_lock_of_its_own": (
        "file lock",
        "file_lock",
        (0,),
        "for a file lock held by rank 0 itself.",
        "Release the lock before",
    ),
    "groups_in_different_orders": (
        "different groups",
        "stuck",
        (0, 1),
        "rank 0 is in new_group for ranks 0 and 1",
        "pass the same list of ranks",
    ),
    "key_of_a_peer_that_waits": (
        "missing key",
        "missing_key",
        (0,),
        "for the key 'go'",
        "PrefixStore",
    ),
    "queue_of_the_peer": (
        "blocked peer",
        "stuck",
        (0,),
        "Rank 0 is blocked in its own code",
        "a lock that is never",
    ),
    "lock_of_its_own": (
        "blocked ranks",
        "stuck",
        (),
        "each rank waits in its own code",
        "a lock that is never",
    ),
    "locks_taken_in_two_orders": (
        "blocked ranks",
        "stuck",
        (),
        "each rank waits in its own code",
        "the line of each rank",
    ),
    "init_with_a_wrong_world_size": (
        "wrong join",
        "stuck",
        (0,),
        "Rank 0 passes world_size=3 to init_process_group, but only 2 ranks run.",
        "world_size must be the number of ranks",
    ),
    "number_of_another_rank": (
        "wrong join",
        "stuck",
        (0,),
        "Ranks 0 and 1 both call init_process_group as rank 1",
        "Each rank must join with its own number",
    ),
    "store_of_its_own": (
        "separate stores",
        "stuck",
        (),
        "but cannot find each other, because they use different stores",
        "must be the same one on all ranks",
    ),
    "group_too_many": (
        "endless setup",
        "stuck",
        (),
        "Every rank waits in new_group for ranks that never make this call",
        "in the same order",
    ),
    "rpc_that_never_returns": (
        "unknown",
        "stuck",
        (),
        "their calls do not show why",
        "must have its counterpart",
    ),
    "receive_in_a_world_of_its_own": (
        "receive from itself",
        "unmatched",
        (0,),
        "Rank 0 waits for itself: its irecv",
        "copy the tensor",
    ),
    "receive_in_a_group_of_its_own": (
        "receive from itself",
        "unmatched",
        (1,),
        "rank 1 is the only rank of this group",
        "a group that contains this rank",
    ),
}
"""Name -> first cause, kind, guilty ranks, words of the summary, words of the advice."""


def test_stored_worlds_have_programs_and_explanations() -> None:
    files = {path.stem for path in FOLDER.glob("*.json")}
    assert files == EXPECTED.keys() <= PROGRAMS.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_explains_each_kind_of_deadlock(name: str) -> None:
    world = stored(name)
    found = diagnose(world.states, world.trace)
    _, kind, guilty, summary, advice = EXPECTED[name]
    assert (found.kind, found.guilty) == (kind, guilty), found
    assert summary in found.summary and advice in found.advice, found
    assert [wait.rank for wait in found.waits] == [state.rank for state in world.states]


@pytest.mark.parametrize("name", EXPECTED)
def test_world_has_one_first_cause(name: str) -> None:
    world = stored(name)
    causes = [cause for cause, _ in explanations(stuck_world(world.states, world.trace))]
    first = [cause.name for cause in causes if cause.priority == causes[0].priority]
    assert first == [EXPECTED[name][0]], "give one of two causes with equal evidence a lower number"


def test_recorded_worlds_cover_all_causes() -> None:
    names = [cause.name for cause in CAUSES]
    assert len(set(names)) == len(names)
    assert set(names) == {expected[0] for expected in EXPECTED.values()}, (
        "append a program for a new cause to tests/ranks/stuck_programs.py, and record its world"
    )


def test_last_cause_fits_every_world() -> None:
    """Because of this cause, `diagnose` always finds a diagnosis."""
    world = stuck_world([], Trace(0))
    causes = [cause for cause, _ in explanations(world, after=Priority.UNRECORDED)]
    assert [cause.name for cause in causes] == ["unknown"]


@pytest.mark.parametrize("name", EXPECTED)
def test_stored_world_contains_no_paths(name: str) -> None:
    text = (FOLDER / f"{name}.json").read_text()
    assert not re.search(r"(?<![\w.])/\w|file:/|[A-Z]:\\", text)
    assert plain_world(stored(name)) == stored(name)


def test_recording_removes_folders_from_every_text() -> None:
    state = RankState(
        0,
        "running",
        at="/home/ada/task.py, line 3",
        keys=("/home/ada/key",),
        others=(("reader", "('/home/ada/my files/task.py', line 4)"),),
        child="process 7 calls send (/home/ada/task.py, line 5)",
        joins=JoinCall(0, 2, "file:///home/ada/meet"),
    )
    place = Place("/home/ada my files/task.py", 6, "work", "cell 5", "open('/home/ada/x')")
    event = Event(0, 0, "send", "send", peer=1, start_ns=5, where=place, by="nn/parallel/ddp.py")
    plain = plain_world(Stored((replace(state, pending=(event,)),), Trace(2, (event,))))
    (state,), (event,) = plain.states, plain.trace.events
    assert (state.at, state.keys) == ("task.py, line 3", ("key",))
    assert "/home" not in str(plain) and state.joins == JoinCall(0, 2, "meet")
    assert event.where == Place("task.py", 6, "work", "cell 5")
    assert event.by == "nn/parallel/ddp.py"


@pytest.mark.parametrize("name", EXPECTED)
def test_distinguishes_calls_with_all_counterparts(name: str) -> None:
    """Only the world with a transfer without a wait has such a call."""
    world = stored(name)
    assert can_complete(world.states, world.trace) is (name == "isend_without_wait")


def test_recognizes_continuable_world() -> None:
    """Only one tag was wrong, or only rank 0 was missing. After the repair, all calls match."""
    tags = stored("tags")
    assert can_complete(tags.states, _changed(tags.trace, tag=1))
    left = stored("left_before_a_collective")
    theirs = left.trace.of(1)[0]
    missing = replace(theirs, rank=0, end_ns=None, error="")
    assert can_complete(left.states, replace(left.trace, events=(missing, *left.trace.events)))


@pytest.mark.parametrize(
    "changes, says",
    [
        ({"nbytes": 8, "shapes": ((2,),)}, "the buffer must be at least as large as the message"),
        ({"dtype": "float64"}, "sends float64"),
    ],
)
def test_reports_mismatched_messages(changes: dict[str, object], says: str) -> None:
    trace = _changed(stored("tags").trace, tag=1)
    assert describe_mismatch(trace) == ""
    send, recv = trace
    assert says in describe_mismatch(replace(trace, events=(replace(send, **changes), recv)))


def test_reports_mismatched_collectives() -> None:
    said = describe_mismatch(stored("different_shapes").trace)
    assert "rank 0 calls all_reduce of 3 float32" in said and "of 4 float32" in said
    assert "rank 1 calls broadcast" in describe_mismatch(stored("another_collective").trace)
    assert describe_mismatch(stored("two_groups_crosswise").trace) == ""


def test_explains_rank_waiting_for_itself() -> None:
    world = stored("cycle_of_receives")
    own = {state.rank: _to_itself(state.blocked) for state in world.states}
    states = [replace(state, blocked=own[state.rank], pending=()) for state in world.states]
    found = diagnose(states, replace(world.trace, events=tuple(own.values())))
    assert found.kind == "cycle" and found.summary == "Rank 0 waits for itself."


def _to_itself(event: Event | None) -> Event:
    assert event is not None
    return replace(event, peer=event.rank)


def _changed(trace: Trace, **changes: int) -> Trace:
    return replace(trace, events=tuple(replace(event, **changes) for event in trace))


def test_explains_ranks_failing_to_meet() -> None:
    states = [
        RankState(
            rank, "running", inside="init_process_group", joins=JoinCall(rank, 2, "/tmp/meet")
        )
        for rank in range(2)
    ]
    found = diagnose(states, Trace([]))
    assert "cannot find each other" in found.summary and "world_size" not in found.advice, found
