"""Exercises of notebook 05: how collectives work."""

from __future__ import annotations

import random
from collections.abc import Iterator

import torch

from helpers.checks.rules import BytesSent, Count, OnlyCalls, Peers, TotalMessages
from helpers.checks.rules_rounds import PortRounds
from helpers.exercises.draws import describe, tensor, tensors
from helpers.exercises.fitted_costs import fits, overtakes
from helpers.exercises.look_at_algorithms import (
    doublings,
    extra,
    look_at_doubling,
    look_at_ring,
    look_at_star,
    look_at_tree,
)
from helpers.exercises.model import Case, Exercise, Kind

NOTEBOOK = "05_collective_algorithms"
TIMEOUT_S = 6.0

_P2P = OnlyCalls(("send", "recv"))
_KEEP_INPUT = "helpers.exercises.keep_input:keep_input"


def _tree_broadcast(rng: random.Random) -> Iterator[Case]:
    for world_size, src, length, dtype in (
        (4, 0, 3, torch.float32),
        (5, 0, 1, torch.float32),
        (5, 3, 4, torch.int64),
        (8, 6, 2, torch.float64),
        (7, 1, 5, torch.float32),
    ):
        x = tensor(rng, length, dtype=dtype)
        blank = torch.zeros_like(x)
        yield Case(
            f"{describe(world_size, [length], dtype)}, from rank {src}",
            world_size,
            [(x if rank == src else blank, src) for rank in range(world_size)],
            [x] * world_size,
            timeout_s=TIMEOUT_S,
        )


def _tree_rounds(case: Case) -> int:
    return (case.world_size - 1).bit_length()


def _sums(rng: random.Random, worlds: tuple[tuple[int, int, torch.dtype], ...]) -> Iterator[Case]:
    for world_size, length, dtype in worlds:
        mine = tensors(rng, world_size, length, dtype=dtype)
        yield Case(
            describe(world_size, [length], dtype),
            world_size,
            [(x,) for x in mine],
            [torch.stack(mine).sum(0)] * world_size,
            timeout_s=TIMEOUT_S,
        )


def _recursive_doubling(rng: random.Random) -> Iterator[Case]:
    f32, f64, i64 = torch.float32, torch.float64, torch.int64
    return _sums(rng, ((4, 3, f32), (3, 5, i64), (2, 1, f64), (8, 2, f32), (6, 4, f32)))


def _doubling_rounds(case: Case) -> int:
    return doublings(case) + 2 * (extra(case) > 0)


def _doubling_messages(case: Case) -> int:
    return int(2 ** doublings(case) * doublings(case) + 2 * extra(case))


def _nbytes(case: Case) -> int:
    x: torch.Tensor = case.inputs[0][0]
    return x.numel() * x.element_size()


def _doubling_bytes(case: Case, rank: int) -> int:
    return (doublings(case) + (extra(case) > 0)) * _nbytes(case)


def _ring_all_reduce(rng: random.Random) -> Iterator[Case]:
    f32, f64, i64 = torch.float32, torch.float64, torch.int64
    return _sums(rng, ((3, 12, f32), (4, 10, i64), (5, 2, f32), (2, 7, f64), (4, 1000, f32)))


def _next_rank(case: Case, rank: int) -> tuple[int, ...]:
    return ((rank + 1) % case.world_size,)


def _ring_rounds(case: Case) -> int:
    return 2 * (case.world_size - 1)


def _ring_bytes(case: Case, rank: int) -> int:
    """2 (p - 1) messages of one chunk, the chunk rounded up to whole elements."""
    x: torch.Tensor = case.inputs[rank][0]
    return _ring_rounds(case) * -(-x.numel() // case.world_size) * x.element_size()


def _all_reduce_by_parameter_server(rng: random.Random) -> Iterator[Case]:
    worlds = (
        (3, 4, 0, torch.float32),
        (4, 3, 2, torch.int64),
        (2, 1, 1, torch.float64),
        (5, 6, 4, torch.float32),
    )
    for world_size, length, server, dtype in worlds:
        mine = tensors(rng, world_size, length, dtype=dtype)
        yield Case(
            f"{describe(world_size, [length], dtype)}, rank {server} is the server",
            world_size,
            [(x, server) for x in mine],
            [torch.stack(mine).sum(0)] * world_size,
            timeout_s=TIMEOUT_S,
        )


def _star(case: Case, rank: int) -> tuple[int, ...]:
    server: int = case.inputs[0][1]
    return tuple(r for r in range(case.world_size) if r != rank) if rank == server else (server,)


def _links(case: Case, rank: int) -> int:
    return len(_star(case, rank))


def _star_bytes(case: Case, rank: int) -> int:
    return _links(case, rank) * _nbytes(case)


def _crossover(rng: random.Random) -> Iterator[Case]:
    for ranks in (4, 8, 16, 4):
        alpha, beta = rng.uniform(30e-6, 120e-6), rng.uniform(0.2e-9, 1.0e-9)
        inputs = {"alpha": alpha, "beta": beta, "ranks": ranks, "seed": rng.randrange(10**6)}
        length = overtakes(alpha, beta, ranks)
        yield Case(
            f"{ranks} ranks, α = {alpha * 1e6:.0f} µs, 1/β = {1e-9 / beta:.1f} GB/s",
            1,
            [(inputs,)],
            [fits(alpha, beta, length)],
        )


EXERCISES = (
    Exercise(
        "tree_broadcast",
        "5.1",
        "Broadcast by a tree",
        NOTEBOOK,
        Kind.RANKS,
        _tree_broadcast,
        (
            "After each round twice as many ranks have the tensor, and all of them can send. Who has "
            "it after round 1, 2, 3 if the root is rank 0?",
            "Number the ranks from the root: `me = (rank - src) % world_size`. In the round with "
            "`step` = 1, 2, 4, ... every `me < step` sends to number `me + step`, if there is one, "
            "and the numbers from `step` to `2 * step - 1` receive.",
            "me = (rank - src) % world_size; step = 1; while step < world_size: if me < step: if "
            "me + step < world_size: send to (me + step + src) % world_size; elif me < 2 * step: "
            "receive from (me - step + src) % world_size; then step *= 2.",
        ),
        minutes=10,
        difficulty=2,
        rules=(
            _P2P,
            PortRounds(
                _tree_rounds,
                "Every rank that has the tensor can pass it on: let all of them send in each round.",
                "takes ⌈log2 p⌉ rounds",
            ),
            TotalMessages(
                lambda case: case.world_size - 1, why="Each rank but the root needs it once."
            ),
        ),
        look=look_at_tree,
    ),
    Exercise(
        "recursive_doubling",
        "5.2",
        "All-reduce by recursive doubling",
        NOTEBOOK,
        Kind.RANKS,
        _recursive_doubling,
        (
            "With 4 ranks: 0 and 1 exchange, 2 and 3 exchange; then 0 and 2, 1 and 3. What does "
            "every rank hold after each round?",
            "`partner = rank ^ step` for step = 1, 2, 4, ... Both send at once: "
            "`work = dist.isend(total, partner)`, `dist.recv(theirs, partner)`, `work.wait()`, and "
            "only then `total += theirs`. Not a power of two? Let the extra ranks hand in first.",
            "`most = 2 ** (world_size.bit_length() - 1)`. A rank >= most sends x to rank - most, then "
            "receives the sum from there. A rank < world_size - most first receives from rank + "
            "most and adds. Ranks < most double; then those with an extra rank send it the sum.",
        ),
        minutes=12,
        difficulty=3,
        programme=_KEEP_INPUT,
        rules=(
            _P2P,
            PortRounds(
                _doubling_rounds,
                "In a round both partners send: `isend`, then `recv`, then `wait`.",
                "takes ⌊log2 p⌋ rounds, and two more where p is not a power of two",
            ),
            TotalMessages(_doubling_messages, at_most=True),
            BytesSent(_doubling_bytes, "Each message is one sum, as long as `x`."),
        ),
        look=look_at_doubling,
    ),
    Exercise(
        "ring_all_reduce",
        "5.3",
        "Ring all-reduce",
        NOTEBOOK,
        Kind.RANKS,
        _ring_all_reduce,
        (
            "Two trips around the ring. On the first, each chunk collects the sum as it passes from "
            "rank to rank; on the second, the finished chunks are copied. Which chunk does rank r "
            "send in step s?",
            "First trip: in step s rank r sends chunk (r - s) % p and receives chunk (r - s - 1) % p, "
            "which it adds. After p - 1 steps rank r holds the finished chunk (r + 1) % p. Second "
            "trip: it sends chunk (r + 1 - s) % p, and what it receives replaces chunk (r - s) % p.",
            "total = x.clone(); chunks = list(total.tensor_split(p)), which are views of total. In "
            "each step: work = dist.isend(chunks[out], next); box = torch.empty_like(chunks[into]); "
            "dist.recv(box, before); work.wait(); then `chunks[into] += box` on the first trip, "
            "`chunks[into].copy_(box)` on the second. Return total.",
        ),
        minutes=18,
        difficulty=4,
        programme=_KEEP_INPUT,
        rules=(
            _P2P,
            Peers(_next_rank, "each rank sends to the next"),
            BytesSent(
                _ring_bytes,
                "That is 2(p - 1) messages of one chunk; a chunk has ⌈N / p⌉ elements at most.",
            ),
            PortRounds(
                _ring_rounds,
                "In a round all ranks send at once: `isend`, then `recv`, then `wait`.",
                "takes 2(p - 1) rounds",
            ),
        ),
        look=look_at_ring,
    ),
    Exercise(
        "all_reduce_by_parameter_server",
        "5.4",
        "All-reduce by a parameter server",
        NOTEBOOK,
        Kind.RANKS,
        _all_reduce_by_parameter_server,
        (
            "Two roles: what does the server do, what does everybody else? Write them as two "
            "branches.",
            "A worker sends its gradient (push), then receives the sum (pull). The server receives "
            "from one worker after the other, adds each to a sum that starts with its own gradient, "
            "and then sends the sum to all.",
            "workers = [r for r in range(world_size) if r != server]; on the server: total = "
            "x.clone(), box = torch.empty_like(x); for each worker: recv box, total += box; "
            "for each worker: send total. On a worker: send x, recv into a new tensor.",
        ),
        minutes=6,
        difficulty=2,
        programme=_KEEP_INPUT,
        rules=(
            _P2P,
            Peers(_star, "workers send to the server only"),
            Count("send", _links, why="A worker pushes once; the server answers each worker once."),
            BytesSent(_star_bytes),
        ),
        look=look_at_star,
    ),
    Exercise(
        "crossover",
        "5.5",
        "Where the ring overtakes",
        NOTEBOOK,
        Kind.MEASUREMENT,
        _crossover,
        (
            "Time one length several times and look at the laps: which of them tell the truth about "
            "the machine?",
            "Throw the first lap of each length away and take the median of some twenty more. A "
            "short message shows α; the slope between long ones shows β. Then set the two costs "
            "equal and solve for n.",
            "time(n) = median of 20 laps after one that is not counted; alpha = time(1); beta = "
            "(time(10_000_000) - alpha) / 10_000_000. With d = log2(p), s = 2(p - 1): "
            "n = alpha (s - d) / (beta (d - s / p)).",
        ),
        minutes=15,
        difficulty=3,
        programme="helpers.exercises.fitted_costs:with_scripted_messages",
        further=True,
    ),
)
