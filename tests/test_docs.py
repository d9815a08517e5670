"""README and docs: short, with links that lead somewhere, and workflows that run every folder of tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")
MAX_README = 8_000


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text()) <= MAX_README


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    missing = [to for to in LINK.findall(page.read_text()) if not (page.parent / to).is_file()]
    assert missing == []


def test_every_page_is_linked_from_the_readme() -> None:
    linked = set(LINK.findall((ROOT / "README.md").read_text()))
    assert {page.relative_to(ROOT).as_posix() for page in PAGES[1:]} <= linked


def test_each_folder_of_tests_belongs_to_one_job() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())
    jobs = workflow["jobs"]["tests"]["strategy"]["matrix"]["include"]
    named = sorted(folder for job in jobs for folder in job["folders"].split())
    tested = {path.relative_to(ROOT).parts[1] for path in (ROOT / "tests").rglob("test_*.py")}
    assert named == sorted(f"tests/{name}" for name in tested if not name.endswith(".py"))
