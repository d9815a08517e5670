"""Honest learners' points never depend on other submissions or on their order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from helpers.checks import exercise
from helpers.checks.draw import Draw, plan_draws
from helpers.grading.cache import Cache, current_versions
from helpers.grading.grader import Grader
from helpers.grading.reference_health import References
from helpers.grading.sandbox.levels import NoSandbox, Plan, choose_level
from helpers.grading.submissions import Job
from tests.grading.conftest import SOLUTIONS
from tests.grading.notebooks import HANGS, RIGHT, write_notebook

NOTEBOOK = "02_blocking_p2p"
TAKES_ALL_PORTS = """
def token_ring(rank, world_size, token):
    import socket
    with socket.create_server(("127.0.0.1", 0)) as server:
        for _ in range(40_000):
            try:
                client = socket.create_connection(server.getsockname())
            except OSError:
                break
            server.accept()[0].close()
            client.close()
    return 0
"""
"""A closed connection's port stays occupied for a minute."""
FILLS_THE_DISK = """
def token_ring(rank, world_size, token):
    for folder in ("/tmp", "/dev/shm"):
        with open(f"{folder}/{rank}", "wb") as file:
            for _ in range(100):
                try:
                    file.write(bytes(1 << 22))
                except OSError:
                    break
    return 0
"""
LEAVES_CHILDREN = """
def token_ring(rank, world_size, token):
    import os, time
    for _ in range(20):
        if os.fork() == 0:
            os.setsid()
            while True:
                time.sleep(1)
    return 0
"""
CRASHES = "def token_ring(rank, world_size, token):\n    import os\n    os.abort()"

CLASS = {
    "anna": [RIGHT],
    "bela": [TAKES_ALL_PORTS, RIGHT],
    "cleo": [FILLS_THE_DISK, RIGHT],
    "dora": [LEAVES_CHILDREN, RIGHT],
    "eli": [CRASHES, RIGHT],
    "fay": [HANGS],
    "gus": [RIGHT],
}
"""Learner -> cells. Learners who spoil their sandbox also hand in a right answer, identical to anna's."""
FEWER = sorted(set(CLASS) - {"bela"})
"""All learners except one who uses two minutes of processor time; `make soak` includes everybody."""
POINTS = {name: 0.0 if cells == [HANGS] else 10.0 for name, cells in CLASS.items()}


@pytest.fixture(autouse=True)
def few_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    def few(sizes: Sequence[int], count: int, seed: str, *, small: bool = False) -> list[Draw]:
        return plan_draws(sizes, min(count, 3), seed, small=small)

    monkeypatch.setattr(exercise, "plan_draws", few)


def points_of(grader: Grader, order: Sequence[str], folder: Path) -> dict[str, float]:
    found = {}
    for name in order:
        path = write_notebook(folder / name / f"{NOTEBOOK}.ipynb", *CLASS[name])
        record = grader.grade(Job(name, path, path.name))
        found[name] = record.points
        notes = " ".join(note for each in record.exercises for note in each.notes)
        assert not any(other in notes for other in CLASS if other != name)
    return found


def grader_with(cache: Path | None, plan: Plan) -> Grader:
    references = References(SOLUTIONS, plan, slot=2)
    versions = current_versions(plan.level)
    return Grader(plan, "a secret of the tests", Cache(cache), versions, references, 1, "none")


@pytest.mark.soak
@pytest.mark.timeout(400)
def test_points_ignore_other_learners(plan: Plan, tmp_path: Path) -> None:
    grader = grader_with(tmp_path / "cache", plan)
    together = points_of(grader, FEWER, tmp_path / "together")
    again = points_of(grader, FEWER[::-1], tmp_path / "again")
    assert together == again == {name: POINTS[name] for name in FEWER}


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("level", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("seed", range(3))
def test_points_ignore_submission_order(seed: int, level: str, plan: Plan, tmp_path: Path) -> None:
    try:
        choose_level(level, plan.staged)
    except NoSandbox as error:
        pytest.skip(str(error))
    order = random.Random(seed).sample(sorted(CLASS), len(CLASS))
    found = points_of(grader_with(None, replace(plan, level=level)), order, tmp_path)
    assert found == POINTS
