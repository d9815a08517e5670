"""An endless answer, as the first of its file, costs only its own points."""

from __future__ import annotations

import multiprocessing
import shutil
import time
from pathlib import Path

import pytest

from helpers.grading.batch import grade_all, read_or_create_secret
from helpers.grading.grade_options import Setting
from helpers.grading.record import Record
from helpers.grading.sandbox.batch_lock import BatchLock
from helpers.grading.sandbox.levels import NoSandbox, Plan, choose_level
from helpers.grading.sandbox.limits import Limits
from helpers.grading.sandbox.staged import StagedFiles
from helpers.grading.submissions import find_submissions
from tests.grading.conftest import SOLUTIONS
from tests.grading.hostile.spinning import SPINNING
from tests.grading.notebooks import write_notebook
from tests.submission_files import all_samples

NOTEBOOK, SPINS, FOLLOWS = "02_blocking_p2p", "ping_pong", "token_ring"
HONEST = "honest"
LEARNER_S = 180
"""Wall time of a learner in seconds. Without it, a single file would have 1,200 s."""


def make_class(folder: Path) -> dict[str, str]:
    """Write an honest learner, and one per kind of endless answer, with a right answer; return the kinds."""
    right = next(s for s in all_samples() if s.right and s.exercise == FOLLOWS)
    ways = {f"learner-{number}": name for number, name in enumerate(SPINNING)}
    for learner, name in ways.items():
        spins = SPINNING[name].replace("def attack(", f"def {SPINS}(")
        write_notebook(folder / learner / f"{NOTEBOOK}.ipynb", spins, right.source)
    (folder / HONEST).mkdir()
    shutil.copy(SOLUTIONS / f"{NOTEBOOK}.ipynb", folder / HONEST)
    return ways


@pytest.fixture(scope="module", autouse=True)
def heap() -> None:
    """Create multiprocessing's lasting resources before a test counts descriptors."""
    multiprocessing.Value("i")


@pytest.mark.soak
@pytest.mark.timeout(5400)
@pytest.mark.parametrize("level", ["bubblewrap", "landlock"])
def test_endless_answer_keeps_later_points(level: str, staged: StagedFiles, tmp_path: Path) -> None:
    try:
        level = choose_level(level, staged)
    except NoSandbox as error:
        pytest.skip(str(error))
    ways = make_class(tmp_path / "class")
    out = tmp_path / "out"
    out.mkdir()
    limits = Limits(learner_s=LEARNER_S)
    setting = Setting(tmp_path / "class", out, jobs=2, pictures="none")
    plan = Plan(level, staged, limits, BatchLock(str(out / ".turns")))
    began, records = time.monotonic(), dict[str, Record]()
    for job, record in grade_all(
        find_submissions(tmp_path / "class").jobs, setting, plan, read_or_create_secret(out)
    ):
        records[job.learner] = record
        told = [(e.outcome, f"{e.points:g}", f"{e.seconds:.0f} s") for e in record.exercises[:2]]
        print(f"{time.monotonic() - began:6.0f} s  {ways.get(job.learner, HONEST):34} {told}")
    honest = records.pop(HONEST)
    assert honest.points == honest.out_of
    for learner, record in records.items():
        points = {e.name: e.points for e in record.exercises if e.points}
        assert points == {FOLLOWS: 10.0}, (ways[learner], record.exercises)
