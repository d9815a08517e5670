"""Exercises of notebook 04: collectives."""

from __future__ import annotations

from helpers.checks.rules import Count, OnlyCalls
from helpers.checks.rules_collectives import Awaited, Calls, HandedIn
from helpers.exercises import collective_cases as cases
from helpers.exercises.look_at_collectives import (
    look_at_argmax,
    look_at_broadcast,
    look_at_columns,
    look_at_gather,
    look_at_moments,
    look_at_rows,
    look_at_split_sum,
    look_at_transpose,
)
from helpers.exercises.model import Exercise, Kind

NOTEBOOK = "04_collectives"
EXERCISES = (
    Exercise(
        "broadcast_from",
        "4.1",
        "Broadcast",
        NOTEBOOK,
        Kind.RANKS,
        cases.broadcast_from,
        (
            "Which ranks must call `dist.broadcast`? And what does a rank hand in that has no data?",
            "All ranks make the same call with the same `src`. A rank that receives needs a tensor of "
            "the right shape and dtype to receive into: `torch.empty(shape, dtype=dtype)`.",
            "if rank != src: x = torch.empty(shape, dtype=dtype). Then, on every rank: "
            "dist.broadcast(x, src=src); return x.",
        ),
        minutes=5,
        difficulty=1,
        rules=(
            Awaited(),
            OnlyCalls(("broadcast",)),
            Count(
                "broadcast",
                1,
                why="One call moves a whole tensor; the functions for objects pickle it and make two.",
            ),
        ),
        look=look_at_broadcast,
    ),
    Exercise(
        "scatter_rows",
        "4.2",
        "Scatter rows",
        NOTEBOOK,
        Kind.RANKS,
        cases.scatter_rows,
        (
            "All parts of one `scatter` have the same shape. What can you do with a matrix of 7 rows "
            "so that it falls into 3 equal parts?",
            "Let `each = -(-rows // world_size)`. Rank `src` adds rows of zeros until there are "
            "`each * world_size`; every rank receives `each` rows and drops those that were added.",
            "On src: padded = torch.zeros(each * world_size, columns, dtype=x.dtype), "
            "padded[:rows] = x, parts = list(padded.split(each)); elsewhere parts = None. "
            "dist.scatter(out, parts, src=src); return out[: max(0, rows - rank * each)].",
        ),
        minutes=10,
        difficulty=2,
        rules=(
            Awaited(),
            OnlyCalls(("scatter",)),
            Count("scatter", 1),
            HandedIn(
                cases.padded_bytes,
                "no more rows are handed in than needed",
                "Each rank needs its rows only.",
            ),
        ),
        look=look_at_rows,
    ),
    Exercise(
        "gather_in_order",
        "4.3",
        "Gather in order",
        NOTEBOOK,
        Kind.RANKS,
        cases.gather_in_order,
        (
            "Write the sample numbers under the parts: rank 0 has 0, p, 2p, ..., rank 1 has 1, p+1, "
            "... In which order would you read them off?",
            "Stack the parts as columns of a matrix: `torch.stack(parts, dim=1)`. Its rows, one "
            "after the other, are the samples in order. Cut after `total`.",
            "parts = [torch.empty_like(predictions) for _ in range(world_size)] on dst, None "
            "elsewhere; dist.gather(predictions, parts, dst=dst); on dst return "
            "torch.stack(parts, dim=1).flatten()[:total].",
        ),
        minutes=10,
        difficulty=2,
        rules=(Awaited(), OnlyCalls(("gather",)), Count("gather", 1)),
        look=look_at_gather,
        further=True,
    ),
    Exercise(
        "global_mean_and_variance",
        "4.4",
        "Global mean and variance",
        NOTEBOOK,
        Kind.RANKS,
        cases.global_mean_and_variance,
        (
            "The mean of the means is wrong where the lengths differ. Which numbers of each rank can "
            "be added up?",
            "Three sums say it all: how many numbers, their sum, the sum of their squares. Put them "
            "into one tensor of float64.",
            "x = x.double(); t = torch.stack([torch.tensor(len(x)).double(), x.sum(), "
            "(x * x).sum()]); dist.all_reduce(t); n, s, q = t.tolist(); return s / n, "
            "q / n - (s / n) ** 2.",
        ),
        minutes=10,
        difficulty=3,
        rules=(
            Awaited(),
            OnlyCalls(("all_reduce",)),
            Count("all_reduce", 1, why="Put what has to be added into one tensor."),
            HandedIn(24, "no more than three numbers", "Three float64 numbers have 24 bytes."),
        ),
        look=look_at_moments,
    ),
    Exercise(
        "global_argmax",
        "4.5",
        "Global argmax",
        NOTEBOOK,
        Kind.RANKS,
        cases.global_argmax,
        (
            "`all_reduce` with MAX gives the largest value, but not whose it is. Which collective "
            "keeps the values of the ranks apart?",
            "`all_gather` of each rank's own maximum: then every rank can find the owner. The owner "
            "alone knows the index; one more collective tells the others.",
            "tops = [torch.empty_like(x.max()) for _ in range(world_size)]; dist.all_gather(tops, "
            "x.max()); owner = int(torch.stack(tops).argmax()); index = x.argmax(); "
            "dist.broadcast(index, src=owner); return owner, index.item().",
        ),
        minutes=15,
        difficulty=3,
        rules=(
            Awaited(),
            OnlyCalls(("all_gather", "all_reduce", "broadcast")),
            Calls(2),
            HandedIn(16, "no more than two numbers in a call", "Two numbers have 16 bytes."),
        ),
        look=look_at_argmax,
        further=True,
    ),
    Exercise(
        "transpose_blocks",
        "4.6",
        "Transpose blocks",
        NOTEBOOK,
        Kind.RANKS,
        cases.transpose_blocks,
        (
            "Draw a matrix of 2 x 2 blocks, a row of blocks on each rank. Which of your blocks does "
            "the other rank need? And what must happen inside a block?",
            "Block j of your rows goes to rank j: `x.chunk(world_size, dim=1)`. Each block is "
            "transposed, by the sender or by the receiver. What comes from rank i are columns of "
            "your result.",
            "send = [b.T.contiguous() for b in x.chunk(world_size, dim=1)]; got = "
            "[torch.empty_like(b) for b in send]; dist.all_to_all(got, send); return "
            "torch.cat(got, dim=1).",
        ),
        minutes=15,
        difficulty=3,
        rules=(
            Awaited(),
            OnlyCalls(("all_to_all",)),
            Count("all_to_all", 1),
            HandedIn(
                cases.own_bytes, "each element is handed in once", "Send each rank its block only."
            ),
        ),
        look=look_at_transpose,
        further=True,
    ),
    Exercise(
        "split_sum",
        "4.7",
        "Split sum",
        NOTEBOOK,
        Kind.RANKS,
        cases.split_sum,
        (
            "`reduce_scatter` adds up and hands each rank its part. What is missing when the length "
            "does not divide?",
            "Add zeros at the end until there are `each * world_size` elements: zeros change no sum. "
            "Afterwards drop those that were added.",
            "each = -(-len(x) // world_size); padded = torch.cat([x, x.new_zeros(each * world_size - "
            "len(x))]); out = x.new_empty(each); dist.reduce_scatter_single(out, padded); return "
            "out[: max(0, len(x) - rank * each)].",
        ),
        minutes=10,
        difficulty=2,
        rules=(
            Awaited(),
            OnlyCalls(("reduce_scatter",)),
            Count("reduce_scatter", 1),
            HandedIn(cases.padded_bytes, "each element is handed in once"),
        ),
        look=look_at_split_sum,
    ),
    Exercise(
        "contiguous_first",
        "4.8",
        "Contiguous first",
        NOTEBOOK,
        Kind.RANKS,
        cases.contiguous_first,
        (
            "A block of columns is a view: its elements do not lie side by side in memory. Which of "
            "your tensors are such views? `t.is_contiguous()` says it.",
            "Make every part contiguous before the call. And look at the tensor that receives: "
            "`torch.empty_like` copies the strides of what it is given.",
            "each = x.shape[1] // world_size; parts = [p.contiguous() for p in "
            "x.chunk(world_size, dim=1)] on src; out = torch.empty(x.shape[0], each); "
            "dist.scatter(out, parts, src=src); return out.",
        ),
        minutes=10,
        difficulty=2,
        rules=(
            Awaited(),
            OnlyCalls(("scatter",)),
            Count("scatter", 1),
            HandedIn(cases.own_bytes, "no more columns are handed in than there are"),
        ),
        look=look_at_columns,
        further=True,
    ),
)
