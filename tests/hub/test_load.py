"""Load one hub with a class: everybody logs in, opens a notebook, and then presses Run in bursts.

REAL_RANKS_HUB_USERS=30 pytest -m soak -s tests/hub/test_load.py
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import defaultdict
from statistics import median, quantiles

import pytest

from helpers.answers.data import Answer
from helpers.answers.reader import read_answers
from helpers.course.workspace import find_workspace
from tests.hub.people import Person
from tests.hub.running import Hub, processes_of, running_hub

USERS = int(os.environ.get("REAL_RANKS_HUB_USERS", "30"))
BURSTS, BURST_S, SPREAD_S = 4, 30.0, 5.0
"""Twice a minute an instructor says "now", and everybody presses Run within five seconds."""

NOTEBOOKS = {"08_synchronous_sgd": "average_gradients", "04_collectives": "broadcast_from"}
IMPORTS = "from helpers import *\nimport torch, torch.distributed as dist, os"
LAUNCH = """
def total(rank, world_size):
    x = torch.ones(1) * ({mark} + rank)
    dist.all_reduce(x)
    return x.item()

launch(total, 3).values"""
DDP = """
def train(rank, n):
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(5):
        optimizer.zero_grad()
        model(torch.ones(8, 64)).sum().backward()
        optimizer.step()
    return rank

launch(train, 2, timeout=120).values"""


@pytest.mark.soak
@pytest.mark.timeout(60 * BURSTS + 1800)
def test_hub_serves_bursts_of_runs() -> None:
    with running_hub(USERS) as hub:
        asyncio.run(_class(hub))


async def _class(hub: Hub) -> None:
    people = [Person(hub, user) for user in hub.users]
    seconds: dict[str, list[float]] = defaultdict(list)
    try:
        await asyncio.gather(*(person.log_in() for person in people))
        _weigh("their servers", hub)
        await asyncio.gather(*(_open(person, number) for number, person in enumerate(people)))
        _weigh("servers and kernels", hub)
        for burst in range(BURSTS):
            began = time.monotonic()
            pressed = (_press_run(p, number, burst, seconds) for number, p in enumerate(people))
            await asyncio.gather(*pressed)
            await asyncio.sleep(max(0.0, began + BURST_S - time.monotonic()))
        _weigh("after all", hub)
    finally:
        for what in ("log in", "open a notebook"):
            seconds[what] = [p.seconds[what] for p in people if what in p.seconds]
        for what, each in seconds.items():
            worst = quantiles(each, n=100, method="inclusive")[98] if len(each) > 1 else max(each)
            print(f"{what}: median {median(each):.2f} s, 99 of 100 within {worst:.2f} s")
        await asyncio.gather(*(person.close() for person in people))


async def _open(person: Person, number: int) -> None:
    name, exercise = list(NOTEBOOKS.items())[number % len(NOTEBOOKS)]
    file = find_workspace().root / "solutions" / f"{name}.ipynb"
    answer = read_answers(file, [exercise])[exercise]
    assert isinstance(answer, Answer)
    began = time.monotonic()
    await person.open(f"{name}.ipynb")
    await person.value(f"{IMPORTS}\n{answer.source}")
    person.seconds["open a notebook"] = time.monotonic() - began


async def _press_run(
    person: Person, number: int, burst: int, seconds: dict[str, list[float]]
) -> None:
    """Run a launch, a DDP cell and a check, one after the other."""
    await asyncio.sleep(random.uniform(0, SPREAD_S))
    exercise = list(NOTEBOOKS.values())[number % len(NOTEBOOKS)]
    first = ", a kernel's first" if not burst else ""
    for what, source, shows in (
        (
            "launch, 3 ranks",
            LAUNCH.format(mark=number),
            f"[{', '.join([f'{3.0 * number + 3}'] * 3)}]",
        ),
        (f"DDP cell{first}", DDP, "[0, 1]"),
        ("check", f"print(check({exercise}))", ": passed\n"),
    ):
        cell = await person.run(source)
        assert shows in cell.text, cell.text
        seconds[what].append(cell.seconds)


def _weigh(what: str, hub: Hub) -> None:
    each = [sum(p.memory_full_info().pss for p in processes_of(user.name)) for user in hub.users]
    print(f"memory, {what}: {sum(each) / 1e9:.1f} GB, median {median(each) / 1e6:.0f} MB a learner")
