"""Exercises of notebook 01: process groups."""

from __future__ import annotations

import random
from collections.abc import Iterator

import torch

from helpers.checks.rules import Holds, OnlyCalls
from helpers.exercises.backends import (
    describe_machine,
    draw_machines,
    look_at_backends,
    right_backend,
)
from helpers.exercises.draws import describe, tensors
from helpers.exercises.look_at_starts import (
    look_at_env,
    look_at_files,
    look_at_grid,
    look_at_jobs,
    reduced_once_each,
)
from helpers.exercises.model import Case, Exercise, Kind
from helpers.exercises.start_groups import ENV, STARTS

NOTEBOOK = "01_process_groups"

_PROGRAMMES = "helpers.exercises.start_groups"
_TIMEOUT_S = 20.0


def _init_from_env(rng: random.Random) -> Iterator[Case]:
    for nodes, per_node in ((1, 2), (2, 2), (3, 1)):
        world_size = nodes * per_node
        plural = "s" * (nodes > 1)
        yield Case(
            f"{nodes} machine{plural}, {per_node} rank{'s' * (per_node > 1)} on each",
            world_size,
            [
                ({"RANK": str(r), "LOCAL_RANK": str(r % per_node), "WORLD_SIZE": str(world_size)},)
                for r in range(world_size)
            ],
            [
                {
                    "returned": (r, world_size, r % per_node),
                    "group": f"rank {r} of {world_size}",
                    "at": "MASTER_PORT",
                }
                for r in range(world_size)
            ],
            env=ENV,
            init=False,
            timeout_s=_TIMEOUT_S,
        )


def _init_from_tcp(rng: random.Random) -> Iterator[Case]:
    for sizes in ((2, 2), (3, 2)):
        places = [
            (f"job {name}", r, n) for name, n in zip("AB", sizes, strict=True) for r in range(n)
        ]
        yield Case(
            f"two jobs at once, of {sizes[0]} and {sizes[1]} ranks, each started twice",
            len(places),
            places,
            [dict.fromkeys(STARTS, f"rank {r} of {n}, TCPStore") for _, r, n in places],
            env=ENV,
            init=False,
            timeout_s=_TIMEOUT_S,
        )


def _init_from_file(rng: random.Random) -> Iterator[Case]:
    for world_size in (2, 3):
        job_ids = tuple(f"job-{number}" for number in rng.sample(range(100, 1000), 2))
        yield Case(
            f"{world_size} ranks, {job_ids[0]} and then {job_ids[1]}",
            world_size,
            [(job_ids,)] * world_size,
            [
                dict.fromkeys(STARTS, f"rank {r} of {world_size}, new file")
                for r in range(world_size)
            ],
            init=False,
            timeout_s=_TIMEOUT_S,
        )


def _pick_backend(rng: random.Random) -> Iterator[Case]:
    for number in (1, 2, 3):
        machines = draw_machines(rng)
        right = {describe_machine(*machine): right_backend(*machine) for machine in machines}
        yield Case(f"{len(machines)} machines, draw {number}", 1, [(machines,)], [right])


def _row_and_column_groups(rng: random.Random) -> Iterator[Case]:
    kinds = (
        (2, 2, 3, torch.float32),
        (2, 3, 1, torch.int64),
        (1, 3, 2, torch.float32),
        (3, 2, 4, torch.float64),
    )
    for rows, cols, length, dtype in kinds:
        mine = tensors(rng, rows * cols, length, dtype=dtype)
        grid = torch.stack(mine).reshape(rows, cols, length)
        yield Case(
            f"{rows} x {cols}: {describe(rows * cols, [length], dtype)}",
            rows * cols,
            [(rows, cols, x) for x in mine],
            [(grid[r // cols].sum(0), grid[:, r % cols].sum(0)) for r in range(rows * cols)],
            init=False,
        )


EXERCISES = (
    Exercise(
        "init_from_env",
        "1.1",
        "Start from the environment",
        NOTEBOOK,
        Kind.MODULE,
        _init_from_env,
        (
            "Nothing is passed in, and nothing needs to be: `init_process_group` reads four of the "
            "five variables itself. Which one does it leave to you?",
            '`dist.init_process_group("gloo")` means `init_method="env://"`. Then ask the group for '
            "rank and world size, and `os.environ` for LOCAL_RANK.",
            'dist.init_process_group("gloo"); then return dist.get_rank(), dist.get_world_size() '
            'and int(os.environ["LOCAL_RANK"]), in this order.',
        ),
        minutes=10,
        difficulty=1,
        programme=f"{_PROGRAMMES}:from_env",
        look=look_at_env,
        own_network=True,
    ),
    Exercise(
        "init_from_tcp",
        "1.2",
        "Start by TCP, on a free port",
        NOTEBOOK,
        Kind.MODULE,
        _init_from_tcp,
        (
            "One rank must choose the port, or there will be as many ports as ranks. How do the "
            "others learn it, before there is a group?",
            "A `FileStore` in the folder: rank 0 sets a key, the others get it. `get` waits until "
            "the key is there. Both sides open the store with the same path.",
            'store = dist.FileStore(f"{folder}/port", world_size); if rank == 0: store.set("port", '
            'str(free_port())); port = int(store.get("port")); then init_process_group with '
            'init_method=f"tcp://127.0.0.1:{port}", rank and world_size.',
        ),
        minutes=15,
        difficulty=3,
        programme=f"{_PROGRAMMES}:from_tcp",
        look=look_at_jobs,
        own_network=True,
    ),
    Exercise(
        "init_from_file",
        "1.3",
        "Start by a file",
        NOTEBOOK,
        Kind.MODULE,
        _init_from_file,
        (
            "All ranks of one job must name the same file, two jobs never. What do all ranks of a "
            "job know that no other job has?",
            "Put `job_id` into the file's name. The address is `file://` and an absolute path, so "
            "three slashes stand in a row. Say rank and world_size as well.",
            'dist.init_process_group("gloo", init_method=f"file://{folder}/{job_id}", rank=rank, '
            "world_size=world_size)",
        ),
        minutes=10,
        difficulty=2,
        programme=f"{_PROGRAMMES}:from_file",
        look=look_at_files,
        own_network=True,
    ),
    Exercise(
        "pick_backend",
        "1.4",
        "Pick a backend",
        NOTEBOOK,
        Kind.LOCAL,
        _pick_backend,
        (
            "When can NCCL not be used at all? There are three reasons, and each of them is enough.",
            "NCCL needs tensors on a GPU, a torch that was built with it, and a GPU for each rank. "
            "Where one is missing, gloo is left.",
            'usable = nccl and gpus >= ranks; if device == "cpu" or not usable: "gloo"; else '
            '"nccl" for device "cuda", "cpu:gloo,cuda:nccl" for "both".',
        ),
        minutes=10,
        difficulty=2,
        programme="helpers.exercises.backends:on_each_machine",
        look=look_at_backends,
    ),
    Exercise(
        "row_and_column_groups",
        "1.5",
        "Row and column groups",
        NOTEBOOK,
        Kind.MODULE,
        _row_and_column_groups,
        (
            "`rows + cols` groups, and every rank calls `new_group` for each of them, also where it "
            "is no member. Only then does it use the two that it is in.",
            "Lay the ranks out as `torch.arange(world_size).reshape(rows, cols)`. Loop over its rows, "
            "then over its columns; keep the group where `rank` is in the list. Reduce clones.",
            "for ranks in grid.tolist(): g = dist.new_group(ranks); if rank in ranks: row = g. The same "
            "with grid.T.tolist() for the columns. a, b = x.clone(), x.clone(); all_reduce a in row, "
            "b in column; return a, b.",
        ),
        minutes=20,
        difficulty=3,
        rules=(
            OnlyCalls(("all_reduce",)),
            Holds(reduced_once_each, "one all_reduce in the row's group, one in the column's"),
        ),
        programme=f"{_PROGRAMMES}:in_a_grid",
        look=look_at_grid,
    ),
)
