"""README and docs: short, with links that lead somewhere, and workflows that run every folder of tests."""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from dataclasses import fields
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from helpers.checks import rules, rules_collectives, rules_spans, rules_transfers
from helpers.checks.answer_file import read_answers_file
from helpers.checks.case import Case
from helpers.checks.exercise import Exercise
from helpers.checks.mistakes import answers_path, select_mistakes, solution_of
from helpers.checks.prove_answers import check_mistake
from helpers.checks.registry import find_exercise
from helpers.course.notebook_file import read_notebook, source_of
from helpers.grading.platforms.protocol import Entries, GradedRoster, Roster
from helpers.trace import causes_missing_calls
from helpers.trace.cause import Priority
from helpers.trace.events import Diagnosis
from helpers.trace.waits import stuck_world
from tests.trace.deadlocks.record import FOLDER as RECORDED_WORLDS
from tests.trace.deadlocks.record import stored

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")
MAX_README = 8_000


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text()) <= MAX_README


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    missing = [to for to in LINK.findall(page.read_text()) if not (page.parent / to).is_file()]
    assert missing == []


def test_readme_links_every_page() -> None:
    linked = set(LINK.findall((ROOT / "README.md").read_text()))
    assert {page.relative_to(ROOT).as_posix() for page in PAGES[1:]} <= linked


def test_contributing_example_is_accepted() -> None:
    """`course mistakes` accepts the known mistake that CONTRIBUTING writes by hand."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    (block,) = re.findall(r"```\n( *# %% sends twice.*?)```", page, re.DOTALL)
    exercise = find_exercise("ping_pong")
    path = answers_path(exercise)
    entries = read_answers_file(textwrap.dedent(block), "example", partial(solution_of, path))
    (mistake,) = select_mistakes(entries)
    assert check_mistake(exercise, mistake).is_rejected


def contributing_block(first_words: str) -> str:
    """Return the block of Python code in CONTRIBUTING that begins with these words."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (block,) = [text for text in map(textwrap.dedent, blocks) if text.startswith(first_words)]
    return block


def test_contributing_cause_explains_recorded_worlds() -> None:
    names = dict(vars(causes_missing_calls))
    names["cause"] = lambda name, priority: lambda find: find  # do not register the example
    exec(contributing_block('@cause("absent root"'), names)
    diagnoses = []
    for path in sorted(RECORDED_WORLDS.glob("*.json")):
        world = stored(path.stem)
        diagnoses.append(names["find_absent_root"](stuck_world(world.states, world.trace)))
    found = list(filter(None, diagnoses))
    assert 0 < len(found) < len(diagnoses)
    assert all(f"for its root, rank {each.guilty[0]}" in each.summary for each in found)


def test_contributing_platform_reads_and_exports() -> None:
    names: dict[str, Any] = {"__name__": "example"}
    exec(contributing_block('"""Classroom X'), names)
    platform, file_name = names["PLATFORM"], "Ann Lee (1234) - answers.ipynb"
    (source,) = platform.sources(Entries((), (file_name, "notes.txt"))).values()
    assert (source.name, source.number) == ("Ann Lee", "1234")
    roster = Roster("x.csv", ("Name", "Learner ID"), (("Ann Lee", "1234"),))
    assert platform.has_exported(roster) and platform.number_column(roster) == 1
    graded = GradedRoster(roster, {"02": 30.0}, ({"02": 20.0},), ((2 / 3, 30.0),))
    assert platform.export(graded) == [["Learner ID", "02"], ["1234", 20.0]]


def test_example_of_exercise_is_current() -> None:
    """The example in docs/exercises.md repeats the files of 4.1, so that authors need only one page."""
    page = (ROOT / "docs" / "exercises.md").read_text()
    shown = [text for _, text in re.findall(r"```(\w*)\n(.*?)```", page, re.DOTALL)]
    task, stub, file, answers = shown
    folder = ROOT / "helpers" / "exercises" / "nb04_collectives"
    cells = read_notebook(ROOT / "solutions" / "04_collectives.ipynb")["cells"]
    assert {task.strip(), stub.strip()} <= {source_of(cell) for cell in cells}
    assert file == (folder / "broadcast_from.py").read_text()
    entries = re.split(r"\n(?=# %% )", (folder / "broadcast_from.answers").read_text())
    repeated = re.split(r"\n(?=# %% )", answers)
    assert len(repeated) == 4
    assert {each.strip() for each in repeated} <= {each.strip() for each in entries}


@pytest.mark.parametrize("module", [rules, rules_collectives, rules_spans, rules_transfers])
def test_reference_lists_every_rule(module: ModuleType) -> None:
    page = (ROOT / "docs" / "exercises.md").read_text()
    classes = [name for name, value in vars(module).items() if hasattr(value, "problem")]
    classes = [name for name in classes if name not in {"Rule", "FirstProblem"}]
    assert classes and [name for name in classes if f"`{name}(" not in page] == []


def test_contributing_lists_kinds_and_priorities() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    listed = set(re.findall(r"`(\w+)`", page))
    used = {each.name for each in Priority} - {"DIFFERENT_CALLS", "UNKNOWN"}
    assert used | set(re.findall(r'"(\w+)"', inspect.getdoc(Diagnosis) or "")) <= listed


@pytest.mark.parametrize("author_class", [Exercise, Case])
def test_reference_lists_every_field(author_class: type) -> None:
    page = (ROOT / "docs" / "exercises.md").read_text()
    assert [f.name for f in fields(author_class) if f"`{f.name}`" not in page] == []


def test_each_test_folder_has_one_job() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())
    jobs = workflow["jobs"]["tests"]["strategy"]["matrix"]["include"]
    named = sorted(folder for job in jobs for folder in job["folders"].split())
    tested = {path.relative_to(ROOT).parts[1] for path in (ROOT / "tests").rglob("test_*.py")}
    assert named == sorted(f"tests/{name}" for name in tested if not name.endswith(".py"))


def test_documents_private_torch_names() -> None:
    """Only names reached by a path from an import of torch count; docs may list other names in the code."""
    path = re.compile(
        r"\b(?:torch|dist|c10d|distributed_c10d|meet|DistributedDataParallel)((?:\.\w+)*\._[a-zA-Z]\w*)"
        r"|from torch[\w.]* import (_\w+)"
    )
    code = [file.read_text() for file in sorted((ROOT / "helpers").rglob("*.py"))]
    for file in sorted((ROOT / "solutions").glob("*.ipynb")):
        cells = json.loads(file.read_text())["cells"]
        code += ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    private = re.compile(r"\b_[a-zA-Z]\w*")
    paths = [found for text in code for found in path.findall(text)]
    used = {name for found in paths for name in private.findall(".".join(found))}
    rows = (ROOT / "docs" / "torch.md").read_text().partition("## Private names")[2]
    listed = set(private.findall(" ".join(re.findall(r"`(.+?)`", rows))))
    assert used - listed == set()
    assert listed <= set(private.findall(" ".join(code)))
