"""Exercises of notebook 02: blocking send and recv."""

from __future__ import annotations

import random
from collections.abc import Iterator

import torch

from helpers.checks.rules import Count, Holds, OnlyCalls, Order, Peers
from helpers.exercises.draws import describe, tensor, tensors
from helpers.exercises.model import Case, Exercise, Kind
from helpers.ranks.run import Run
from helpers.trace.events import Trace

NOTEBOOK = "02_blocking_p2p"
LENGTH, LETTER = 1, 2
"""The tags of `tagged_mail`."""

_P2P = OnlyCalls(("send", "recv"))


def _ping_pong(rng: random.Random) -> Iterator[Case]:
    for world_size, rounds, length in ((2, 1, 3), (2, 4, 1), (3, 2, 5)):
        ball = tensor(rng, length)
        expected = [ball + rounds, ball + rounds, *[None] * (world_size - 2)]
        plural = "s" * (rounds > 1)
        blank = torch.zeros(length)  # only rank 0 has the ball
        yield Case(
            f"{describe(world_size, [length])}, {rounds} round{plural}",
            world_size,
            [(blank if rank else ball, rounds) for rank in range(world_size)],
            expected,
        )


def _ping_pong_order(case: Case, rank: int) -> tuple[str, ...]:
    rounds: int = case.inputs[rank][1]
    return {0: ("send", "recv"), 1: ("recv", "send")}.get(rank, ()) * rounds


def _token_ring(rng: random.Random) -> Iterator[Case]:
    for world_size in (2, 3, 5):
        token = rng.randrange(10, 90)
        tokens = [token + r * (r - 1) // 2 for r in range(1, world_size)]
        back = token + world_size * (world_size - 1) // 2
        yield Case(
            f"{world_size} ranks, token {token}",
            world_size,
            [(token,) for _ in range(world_size)],
            [back, *tokens],
        )


def _next_rank(case: Case, rank: int) -> tuple[int, ...]:
    return ((rank + 1) % case.world_size,)


def _exchange_in_pairs(rng: random.Random) -> Iterator[Case]:
    sizes = (
        (2, 1, torch.float32),
        (4, 1000, torch.float64),
        (3, 4, torch.int64),
        (5, 2, torch.float32),
    )
    for world_size, length, dtype in sizes:
        mine = tensors(rng, world_size, length, dtype=dtype)
        yield Case(
            describe(world_size, [length], dtype),
            world_size,
            [(x,) for x in mine],
            [mine[partner if (partner := r ^ 1) < world_size else r] for r in range(world_size)],
        )


def _has_partner(case: Case, rank: int) -> int:
    return int((rank ^ 1) < case.world_size)


def _tagged_mail(rng: random.Random) -> Iterator[Case]:
    for world_size in (2, 3, 5):
        lengths = rng.sample(range(1, 9), world_size - 1)
        letters = [tensor(rng, n) for n in lengths]
        yield Case(
            f"{world_size} ranks, letters of length {', '.join(map(str, lengths))}",
            world_size,
            [(torch.empty(0),), *[(letter,) for letter in letters]],
            [letters, *[None] * (world_size - 1)],
        )


def _tags_fit(trace: Trace, case: Case) -> str:
    for event in trace.calls:
        if event.op == "send" and event.tag not in {LENGTH, LETTER}:
            return (
                f"rank {event.rank} sends with tag {event.tag}; "
                "a length goes with tag 1, a letter with tag 2."
            )
    for rank in range(1, case.world_size):
        tags = [event.tag for event in trace.of(rank) if event.op == "send"]
        if sorted(tags) != [LENGTH, LETTER]:
            return (
                f"rank {rank} sends messages with the tags {tags}; "
                "it must send one of tag 1 and one of tag 2."
            )
        sizes = {e.tag: e.nbytes for e in trace.of(rank) if e.op == "send"}
        if sizes[LETTER] != 4 * len(case.inputs[rank][0]):
            return f"rank {rank} sends {sizes[LETTER]} bytes with tag 2: the letter itself belongs there."
    return ""


def _pipeline_sum(rng: random.Random) -> Iterator[Case]:
    for world_size, length, chunk in ((2, 4, 2), (3, 7, 3), (4, 6, 1), (3, 5, 8)):
        mine = tensors(rng, world_size, length)
        total = torch.stack(mine).cumsum(0)
        yield Case(
            f"{describe(world_size, [length])}, chunks of {chunk}",
            world_size,
            [(x, chunk) for x in mine],
            list(total),
        )


def _chunks(case: Case) -> int:
    x, chunk = case.inputs[0]
    return int(-(-len(x) // chunk))


def _hand_on_at_once(case: Case, rank: int) -> tuple[str, ...]:
    """A middle rank passes each chunk on before it takes the next: that is what makes a pipeline."""
    one = ("recv",) * (rank > 0) + ("send",) * (rank < case.world_size - 1)
    return one * _chunks(case)


def _small_messages(trace: Trace, case: Case) -> str:
    most = case.inputs[0][1] * 4
    for event in trace.calls:
        if event.op == "send" and event.nbytes > most:
            return (
                f"rank {event.rank} sends {event.nbytes} bytes at once; a chunk has at most {most}."
            )
    return ""


def _look_at_ball(case: Case, run: Run) -> str:
    ball, rounds = case.inputs[0]
    if run.failure is None and _same(run.values[1], ball + rounds - 1):
        return "Rank 1 must return the ball after it has added 1, as it sent it last."
    return ""


def _look_at_token(case: Case, run: Run) -> str:
    if run.failure is not None or case.expected is None:
        return ""
    if run.values[0] == case.inputs[0][0]:
        return "Rank 0 returns the token that it sent, not the one that came back."
    if run.values[1] == case.expected[1] + 1:
        return "Return the token as it was received, before the rank is added."
    return ""


def _look_at_pairs(case: Case, run: Run) -> str:
    if run.failure is None:
        for rank, value in enumerate(run.values):
            if (rank ^ 1) < case.world_size and _same(value, case.inputs[rank][0]):
                return (
                    f"Rank {rank} has its own tensor again: did a `recv` overwrite `x` before it was "
                    "sent? Receive into a tensor of its own."
                )
    return ""


def _look_at_mail(case: Case, run: Run) -> str:
    letters = run.values[0]
    if run.failure is not None or not isinstance(letters, list):
        return ""
    wanted = [case.inputs[rank][0] for rank in range(1, case.world_size)]
    if len(letters) == len(wanted) + 1:
        return "Rank 0's own, empty letter does not belong into the list."
    if len(letters) == len(wanted) > 1 and all(_same(letters[-1], one) for one in letters):
        return "All letters are the same: is one buffer filled again and again? Make one for each."
    return ""


def _look_at_pipeline(case: Case, run: Run) -> str:
    x, chunk = case.inputs[0]
    if run.failure is not None or not isinstance(run.values[0], torch.Tensor):
        return ""
    if len(run.values[0]) != len(x):
        return (
            f"The last chunk is shorter where {chunk} does not divide {len(x)}: look at the sizes."
        )
    if _same(run.values[-1], 2 * case.expected[-1] if case.expected else None):
        return "Something is added twice: is `recv` writing into the chunk itself?"
    return "The sum so far comes from the rank before: receive it, add your own part, hand it on."


def _same(one: object, other: object) -> bool:
    both = isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)
    return both and torch.equal(one, other)  # type: ignore[arg-type]


EXERCISES = (
    Exercise(
        "ping_pong",
        "2.1",
        "Ping-pong",
        NOTEBOOK,
        Kind.RANKS,
        _ping_pong,
        (
            "In every round rank 0 sends and then receives. What must rank 1 do, in which order?",
            "`dist.recv(ball, src)` writes into the tensor that you give it. Rank 1 receives into "
            "`ball`, adds 1 in place (`ball += 1`) and sends the same tensor back.",
            "for _ in range(rounds): if rank == 0, send to 1 then recv from 1; if rank == 1, recv "
            "from 0, add 1, send to 0. Ranks 2 and above return None before the loop.",
        ),
        minutes=10,
        difficulty=1,
        rules=(_P2P, Order(_ping_pong_order, "the ball goes to and fro, once each way in a round")),
        look=_look_at_ball,
    ),
    Exercise(
        "token_ring",
        "2.2",
        "Token ring",
        NOTEBOOK,
        Kind.RANKS,
        _token_ring,
        (
            "One rank must begin, or all wait for each other. Which one has the token? And a number "
            "travels as a tensor: `torch.tensor([token])`.",
            "The next rank is `(rank + 1) % world_size`, the one before is `(rank - 1) % world_size`. "
            "Rank 0 sends first and receives last; the others receive first.",
            "Put the number into a tensor: `t = torch.tensor([token])`. Rank 0: send t to next, recv "
            "into t from previous. Others: recv into t, keep `t.item()`, send `t + rank`.",
        ),
        minutes=10,
        difficulty=2,
        rules=(
            _P2P,
            Count("send", 1),
            Count("recv", 1),
            Peers(_next_rank, "each rank sends to the next"),
        ),
        look=_look_at_token,
    ),
    Exercise(
        "exchange_in_pairs",
        "2.3",
        "Exchange in pairs",
        NOTEBOOK,
        Kind.RANKS,
        _exchange_in_pairs,
        (
            "If both ranks of a pair send first, each send waits for a recv. One of them has to "
            "receive first.",
            "Let the parity of the rank decide who sends first. A rank whose partner would be "
            "`world_size` or more has none: it keeps its own tensor.",
            "theirs = torch.empty_like(x); if rank < partner: send, then recv; else: recv, then send. "
            "Return theirs.",
        ),
        minutes=10,
        difficulty=2,
        rules=(_P2P, Count("send", _has_partner), Count("recv", _has_partner)),
        look=_look_at_pairs,
    ),
    Exercise(
        "tagged_mail",
        "2.4",
        "Tagged mail",
        NOTEBOOK,
        Kind.RANKS,
        _tagged_mail,
        (
            "Rank 0 cannot make a buffer before it knows how long the letter is.",
            "Send the length first, as a tensor of one int64, with tag 1; then the letter with tag 2. "
            "Rank 0 receives both from the same rank, the length first.",
            "Rank 0, for each source: `n = torch.zeros(1, dtype=torch.int64)`; recv n with tag 1; "
            "`letter = torch.empty(n.item())`; recv letter with tag 2; append it to the list.",
        ),
        minutes=15,
        difficulty=3,
        rules=(_P2P, Holds(_tags_fit, "a length with tag 1, a letter with tag 2")),
        look=_look_at_mail,
    ),
    Exercise(
        "pipeline_sum",
        "2.5",
        "Pipeline sum",
        NOTEBOOK,
        Kind.RANKS,
        _pipeline_sum,
        (
            "Without chunks, rank 3 idles until the whole tensor has passed ranks 0, 1 and 2.",
            "Loop over `x.split(chunk)`. In each turn: receive the sum so far from the rank before "
            "(if there is one), add your own chunk, hand it to the next rank (if there is one).",
            "for part in x.split(chunk): total = part.clone(); if rank > 0: recv into `before`, "
            "total += before; if rank < world_size - 1: send total; append it. Return torch.cat.",
        ),
        minutes=20,
        difficulty=3,
        rules=(
            _P2P,
            Holds(_small_messages, "no message is larger than a chunk"),
            Order(_hand_on_at_once, "each chunk is handed on before the next is taken"),
        ),
        look=_look_at_pipeline,
        further=True,
    ),
)
