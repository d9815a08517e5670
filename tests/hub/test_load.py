"""A class on one hub: everybody logs in and opens a notebook, and then presses Run in bursts.

REAL_RANKS_HUB_USERS=30 REAL_RANKS_HUB_MINUTES=10 pytest -m soak -s tests/hub/test_load.py
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median, quantiles

import psutil
import pytest

from helpers.answers.data import Answer
from helpers.answers.reader import read_answers
from helpers.course.workspace import find_workspace
from tests.hub.people import Person as Visitor
from tests.hub.running import Hub, User, processes_of, running_hub

USERS = int(os.environ.get("REAL_RANKS_HUB_USERS", "30"))
MINUTES = float(os.environ.get("REAL_RANKS_HUB_MINUTES", "10"))
BURST_S, SPREAD_S = 30.0, 5.0
"""An instructor says "now": everybody presses Run within five seconds, twice a minute."""

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
NOTEBOOKS = {"08_synchronous_sgd": "average_gradients", "04_collectives": "broadcast_from"}


@dataclass
class Person(Visitor):
    has_trained: bool = False


@pytest.mark.soak
@pytest.mark.timeout(60 * MINUTES + 1200)
def test_a_class_presses_run_in_bursts() -> None:
    with running_hub(USERS) as hub:
        asyncio.run(_class(hub))


async def _class(hub: Hub) -> None:
    end = time.monotonic() + 60 * MINUTES
    free = psutil.virtual_memory().available
    people = [Person(hub, user) for user in hub.users]
    times: dict[str, list[float]] = defaultdict(list)
    try:
        began = time.monotonic()
        await asyncio.gather(*(person.log_in() for person in people))
        print(f"\nall {USERS} have logged in after {time.monotonic() - began:.0f} s")
        _say("log in", [person.seconds["log in"] for person in people])
        _weigh("their servers", hub.users)
        began = time.monotonic()
        await asyncio.gather(*(_open(person, number) for number, person in enumerate(people)))
        print(f"all have their kernel after {time.monotonic() - began:.0f} s")
        _say("open a notebook, first cell", [p.seconds["open a notebook"] for p in people])
        _weigh("servers and kernels", hub.users)
        bursts = 0
        while time.monotonic() < end or bursts < 2:
            next_burst = time.monotonic() + BURST_S
            await asyncio.gather(
                *(_press_run(person, number, times) for number, person in enumerate(people))
            )
            bursts += 1
            await asyncio.sleep(max(0.0, min(next_burst, end) - time.monotonic()))
        for what, seconds in times.items():
            _say(what, seconds)
        _weigh("after all", hub.users)
        least = psutil.virtual_memory().available
        print(f"{bursts} bursts; {(free - least) / 1e9:.1f} GB of the machine's memory in use")
        print(f"load average: {os.getloadavg()}")
    finally:
        await asyncio.gather(*(person.close() for person in people))


async def _open(person: Person, number: int) -> None:
    name = list(NOTEBOOKS)[number % len(NOTEBOOKS)]
    await person.open(f"{name}.ipynb")
    began = time.monotonic()
    await person.value(f"{IMPORTS}\n{_answer(name)}")
    person.seconds["open a notebook"] += time.monotonic() - began


def _answer(notebook: str) -> str:
    exercise = NOTEBOOKS[notebook]
    file = find_workspace().root / "solutions" / f"{notebook}.ipynb"
    answer = read_answers(file, [exercise])[exercise]
    assert isinstance(answer, Answer)
    return answer.source


async def _press_run(person: Person, number: int, times: dict[str, list[float]]) -> None:
    """Run a launch, a DDP cell and a check, each once the one before has ended."""
    await asyncio.sleep(random.uniform(0, SPREAD_S))
    exercise = list(NOTEBOOKS.values())[number % len(NOTEBOOKS)]
    expected = 3.0 * number + 3.0
    cell = await person.run(LAUNCH.format(mark=number))
    assert cell.text.endswith(f"[{expected}, {expected}, {expected}]\n"), cell.text
    times["launch, 3 ranks"].append(cell.seconds)
    cell = await person.run(DDP)
    assert cell.text.endswith("[0, 1]\n"), cell.text  # below a live view
    of = "DDP cell" if person.has_trained else "DDP cell, a kernel's first"
    times[of].append(cell.seconds)
    person.has_trained = True
    cell = await person.run(f"print(check({exercise}))")
    assert "passed (" in cell.text, cell.text
    times["check"].append(cell.seconds)


def _say(what: str, seconds: list[float]) -> None:
    worst = quantiles(seconds, n=100, method="inclusive")[98] if len(seconds) > 1 else seconds[0]
    print(
        f"{what}: median {median(seconds):.2f} s, 99 of 100 within {worst:.2f} s, "
        f"longest {max(seconds):.2f} s ({len(seconds)})"
    )


def _weigh(what: str, users: Iterable[User]) -> None:
    each = [sum(p.memory_full_info().pss for p in processes_of(user.name)) for user in users]
    print(f"memory, {what}: {sum(each) / 1e9:.1f} GB, median {median(each) / 1e6:.0f} MB a learner")
