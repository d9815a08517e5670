"""What was handed in is found however it lies there, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.grading.submissions import NoSubmissions, find_submissions


def put(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    return folder


@pytest.mark.parametrize(
    ("name", "learner"),
    [
        ("anna_02_blocking_p2p.ipynb", "anna"),
        ("02_blocking_p2p-anna.ipynb", "anna"),
        ("anna.ipynb", "anna"),
        ("bela/02_blocking_p2p.ipynb", "bela"),
        ("bela/nested/twice/02.ipynb", "bela"),
        ("Cy Lee_123_assignsubmission_file_/x.ipynb", "Cy Lee"),
        ("dora/02_blocking_p2p/02_blocking_p2p.ipynb", "dora"),
    ],
)
def test_the_learner_is_named_by_file_or_folder(tmp_path: Path, name: str, learner: str) -> None:
    jobs, notices = find_submissions(put(tmp_path, name))
    assert [(job.learner, job.file) for job in jobs] == [(learner, name)]
    assert notices == []


def test_what_is_no_submission_is_passed_over_and_told(tmp_path: Path) -> None:
    put(tmp_path, "a/x.ipynb", "a/.ipynb_checkpoints/x.ipynb", "b/notes.txt", "__MACOSX/y.ipynb")
    (tmp_path / "link.ipynb").symlink_to(tmp_path / "a" / "x.ipynb")
    (tmp_path / "away").symlink_to("/")
    jobs, notices = find_submissions(tmp_path)
    assert [job.file for job in jobs] == ["a/x.ipynb"]
    assert sorted(notices) == [
        "away: a symbolic link, passed over",
        "b: no notebook in this folder",
        "link.ipynb: a symbolic link, passed over",
    ]


def test_names_that_a_terminal_would_obey_are_made_plain(tmp_path: Path) -> None:
    jobs, _ = find_submissions(put(tmp_path, "\x1b[31mred/x.ipynb"))
    assert jobs[0].learner == "?[31mred"


@pytest.mark.parametrize("what", ["missing", "file", "empty"])
def test_a_folder_that_gives_nothing_is_one_clear_line(tmp_path: Path, what: str) -> None:
    folder = tmp_path / what
    if what == "file":
        folder.write_text("")
    elif what == "empty":
        folder.mkdir()
    with pytest.raises(NoSubmissions) as raised:
        find_submissions(folder)
    assert "\n" not in str(raised.value)
    assert what in str(raised.value)
