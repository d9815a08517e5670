"""Exercises of notebook 03: transfers that are issued first and waited for later."""

from __future__ import annotations

from helpers.checks.rules import Count, Holds, OnlyCalls, Peers
from helpers.checks.rules_transfers import (
    EachIsWaitedFor,
    InFlightTogether,
    NothingBlocks,
    SpanInFlight,
)
from helpers.exercises import transfer_cases as cases
from helpers.exercises.look_at_transfers import (
    look_at_buffers,
    look_at_halo,
    look_at_overlap,
    look_at_shift,
    look_at_swap,
)
from helpers.exercises.model import Exercise, Kind

NOTEBOOK = "03_nonblocking_p2p"

_STRICTLY = "helpers.exercises.strict_transfers:strictly"
_TRANSFERS = (OnlyCalls(("send", "recv")), NothingBlocks(), EachIsWaitedFor())
EXERCISES = (
    Exercise(
        "swap",
        "3.1",
        "Swap",
        NOTEBOOK,
        Kind.MODULE,
        cases.swap,
        (
            "No rank has to go first any more: every rank can run the same lines. What must both "
            "ranks of a pair have done before either of them waits?",
            "Issue both transfers, then wait for both. The received tensor needs a place of its own "
            "(`torch.empty_like(x)`), because `x` is in flight. The rank in the middle has no partner.",
            "partner = world_size - 1 - rank; if partner == rank: return x; theirs = empty_like(x); "
            "works = [dist.isend(x, partner), dist.irecv(theirs, partner)]; wait for each work; "
            "return theirs.",
        ),
        minutes=5,
        difficulty=1,
        programme=_STRICTLY,
        rules=(
            *_TRANSFERS,
            Count("send", cases.has_mirror),
            Count("recv", cases.has_mirror),
            Peers(cases.mirror, "each rank sends to its partner"),
            InFlightTogether(2, "both transfers are in flight together"),
        ),
        look=look_at_swap,
    ),
    Exercise(
        "safe_buffers",
        "3.2",
        "Safe buffers",
        NOTEBOOK,
        Kind.MODULE,
        cases.safe_buffers,
        (
            "Message 2 goes into the buffer that message 0 came from. When may you fill it?",
            "Use the buffers in turn: message i goes into buffer `i % 2`. Keep the work of each "
            "message. Before you fill a buffer, wait for the message that was sent from it last.",
            "works = []; for i in range(count): if i >= 2: works[i - 2].wait(); fill(buffers[i % 2], "
            "i); works.append(dist.isend(buffers[i % 2], dst)). After the loop: for work in "
            "works[-2:]: work.wait().",
        ),
        minutes=15,
        difficulty=3,
        programme="helpers.exercises.slow_receiver:to_slow_receiver",
        rules=(
            OnlyCalls(("send", "recv")),
            Count("send", cases.messages),
            Holds(cases.fills_in_flight, "one buffer is filled while the other is in flight"),
            EachIsWaitedFor(),
        ),
        look=look_at_buffers,
    ),
    Exercise(
        "halo_exchange",
        "3.3",
        "Halo exchange",
        NOTEBOOK,
        Kind.MODULE,
        cases.halo_exchange,
        (
            "Which cells of its neighbours does a block need for one sweep? And what stands in their "
            "place at the two ends of the rod?",
            "In each sweep: two halo tensors of one cell, filled with `left` and `right` where there "
            "is no neighbour; an isend and an irecv for each neighbour; wait for all; then "
            "`torch.cat([west, block, east])` and one line of arithmetic.",
            "west, east = block.new_tensor([left]), block.new_tensor([right]); if rank > 0: isend "
            "block[:1], irecv west; if rank < world_size - 1: isend block[-1:], irecv east; wait for "
            "all; padded = cat([west, block, east]); block = (padded[:-2] + padded[2:]) / 2.",
        ),
        minutes=15,
        difficulty=3,
        programme=_STRICTLY,
        rules=(
            *_TRANSFERS,
            Holds(cases.one_cell_each, "one cell goes to each neighbour"),
            Count("send", cases.edges, why="That is one to each neighbour in each sweep."),
            Count("recv", cases.edges, why="That is one from each neighbour in each sweep."),
            Peers(cases.neighbours, "each rank sends to its neighbours"),
            InFlightTogether(cases.in_one_sweep, "all transfers of a sweep are in flight together"),
        ),
        look=look_at_halo,
    ),
    Exercise(
        "shift_with_batch",
        "3.4",
        "Shift with a batch",
        NOTEBOOK,
        Kind.MODULE,
        cases.shift_with_batch,
        (
            "Your tensor goes to the rank that is `by` further on. From which rank does yours come?",
            "A `dist.P2POp(dist.isend, x, peer)` describes a transfer without starting it. Put two "
            "into a list. When does a rank turn out to be its own target?",
            "if by % world_size == 0: return x; box = empty_like(x); ops = [P2POp(dist.isend, x, (rank "
            "+ by) % world_size), P2POp(dist.irecv, box, (rank - by) % world_size)]; for work in "
            "dist.batch_isend_irecv(ops): work.wait(); return box.",
        ),
        minutes=10,
        difficulty=2,
        programme=_STRICTLY,
        rules=(
            *_TRANSFERS,
            Count("send", cases.moves),
            Count("recv", cases.moves),
            Peers(cases.target, "each rank sends to the one that is `by` further on"),
            Holds(cases.batched, "one batch_isend_irecv takes both transfers"),
            InFlightTogether(2, "both transfers are in flight together"),
        ),
        look=look_at_shift,
        further=True,
    ),
    Exercise(
        "overlap",
        "3.5",
        "Overlap",
        NOTEBOOK,
        Kind.MODULE,
        cases.overlap,
        (
            "Three steps: issue, compute, wait. Which of them needs what the rank before sends?",
            "Only the sum at the end needs the received tensor. So call `compute()` after isend and "
            "irecv, and before the first wait.",
            "box = torch.empty_like(x); works = [isend x to the next rank, irecv box from the one "
            "before]; mine = compute(); for work in works: work.wait(); return mine + box.",
        ),
        minutes=10,
        difficulty=2,
        programme="helpers.exercises.strict_transfers:with_compute",
        rules=(
            *_TRANSFERS,
            Count("send", 1),
            Count("recv", 1),
            Peers(cases.next_rank, "each rank sends to the next"),
            SpanInFlight("compute"),
        ),
        look=look_at_overlap,
    ),
)
