"""A right answer also passes on a busy machine, so verdicts do not depend on luck."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.checks.check_notebook import grade_notebook
from helpers.checks.exercise import VISIBLE_SECRET
from helpers.views.verdict import verdict_text
from tests.notebooks.solved import each_solved

BURNERS = 8
_ENDS_WITH_ITS_PARENT = (
    "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    sum(range(1_000_000))\n"
)


@pytest.fixture(scope="module")
def burners() -> Iterator[None]:
    """Keep every core busy with unrelated processes."""
    started = [
        subprocess.Popen([sys.executable, "-c", _ENDS_WITH_ITS_PARENT]) for _ in range(BURNERS)
    ]
    try:
        yield
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()


@pytest.mark.soak
@pytest.mark.timeout(1500)
@pytest.mark.usefixtures("burners")
@each_solved
def test_reference_solutions_pass_on_busy_machine(path: Path) -> None:
    results = grade_notebook(path, VISIBLE_SECRET)
    print(f"{path.stem}: {len(results)} exercises, load {os.getloadavg()[0]:.0f}")
    failed = [verdict_text(result) for result in results if not result.passed]
    assert not failed, "\n\n".join(failed)
