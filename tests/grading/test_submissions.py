"""What was handed in is found however it lies there, and nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.grading.submissions import MOST_FILES, NoSubmissions, find_submissions


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
        ("emil/02_blocking_p2p.IPYNB", "emil"),
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
        "b: no notebook in this folder, 4 folders deep",
        "link.ipynb: a symbolic link, passed over",
    ]


def test_names_that_a_terminal_would_obey_are_made_plain(tmp_path: Path) -> None:
    jobs, _ = find_submissions(put(tmp_path, "\x1b[31mred/x.ipynb"))
    assert jobs[0].learner == "?[31mred"


@pytest.mark.parametrize(
    "names",
    [
        ("anna/02.ipynb", "anna /02.ipynb"),
        ("Anna/02.ipynb", "anna/03.ipynb"),
        ("andre\u0301/02.ipynb", "andr\u00e9/02.ipynb"),
        ("Cy Lee_12_assignsubmission_file_/x.ipynb", "Cy Lee_13_assignsubmission_file_/x.ipynb"),
        ("anna/02.ipynb", "anna_02_blocking_p2p.ipynb"),
        ("anna_02_blocking_p2p.ipynb", "anna 02_blocking_p2p.ipynb"),
    ],
    ids=lambda names: names[0],
)
def test_two_of_the_same_name_are_told_and_never_put_together(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    jobs, notices = find_submissions(put(tmp_path, *names))
    assert len({job.learner for job in jobs}) == 2
    assert len(notices) == 1 and "not put together" in notices[0]
    if "Cy" in names[0]:
        assert sorted(job.learner for job in jobs) == ["Cy Lee (12)", "Cy Lee (13)"]


def test_many_files_of_one_learner_are_one_learners(tmp_path: Path) -> None:
    names = (
        "anna_02_blocking_p2p.ipynb",
        "anna_03_nonblocking_p2p.ipynb",
        "03_nonblocking_p2p-bela.ipynb",
    )
    jobs, notices = find_submissions(put(tmp_path, *names))
    assert [job.learner for job in jobs] == ["anna", "anna", "bela"] and not notices


def test_a_name_does_not_depend_on_the_order_in_which_a_set_is_read(tmp_path: Path) -> None:
    put(tmp_path, "dora_03_nonblocking_p2p_02_blocking_p2p.ipynb")
    script = (
        "import sys; from pathlib import Path; from helpers.grading.submissions import find_submissions; "
        "print(find_submissions(Path(sys.argv[1]))[0][0].learner)"
    )
    names = set()
    for seed in "0123":
        env = {**os.environ, "PYTHONHASHSEED": seed}
        words = [sys.executable, "-c", script, str(tmp_path)]
        names.add(subprocess.run(words, env=env, capture_output=True, check=True, text=True).stdout)
    assert len(names) == 1 and "dora" in names.pop()


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


NAME = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="/\0"), min_size=1, max_size=30
).filter(lambda name: name not in {".", ".."} and len(name.encode()) < 120)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(NAME, NAME), max_size=6, unique=True),
    st.lists(NAME, max_size=4, unique=True),
)
def test_any_folder_gives_each_notebook_one_learner_whatever_names_are_in_it(
    inside: list[tuple[str, str]], files: list[str]
) -> None:
    with TemporaryDirectory() as folder:
        for above, name in inside:
            with suppress(OSError):  # taken by a file, or a name that this file system refuses
                put(Path(folder), f"{above}/{name}.ipynb")
        for name in files:
            with suppress(OSError):
                put(Path(folder), f"{name}.ipynb")
        shown = [p for p in Path(folder).rglob("*.ipynb") if p.is_file()]
        shown = [
            p for p in shown if not any(part[0] == "." for part in p.relative_to(folder).parts)
        ]
        shown = [p for p in shown if "__MACOSX" not in "/".join(p.relative_to(folder).parts)]
        try:
            jobs, notices = find_submissions(Path(folder))
        except NoSubmissions:
            jobs, notices = [], []
        assert sorted(job.path for job in jobs) == sorted(shown)
        for job in jobs:
            assert job.learner.strip() == job.learner and job.learner.isprintable()
        folders: dict[str, set[str]] = {}
        for job in jobs:
            first, *rest = job.path.relative_to(folder).parts
            if rest:
                folders.setdefault(job.learner, set()).add(first)
        assert all(len(each) == 1 for each in folders.values()), "two folders are one learner's"
        assert not any(chr(10) in notice for notice in notices)


@pytest.mark.parametrize(
    ("file", "learner"),
    [
        ("leecy_123_456_04_collectives.ipynb", "leecy (123)"),
        ("leecy_LATE_123_457_04_collectives-1.ipynb", "leecy (123)"),
        ("anna_02_blocking_p2p (1).ipynb", "anna"),
        ("-bob_02_blocking_p2p.ipynb", "-bob"),
        ("bob._02_blocking_p2p.ipynb", "bob."),
    ],
)
def test_names_as_canvas_and_browsers_write_them(tmp_path: Path, file: str, learner: str) -> None:
    ((job,), notices) = find_submissions(put(tmp_path, file))
    assert job.learner == learner and not notices


@pytest.mark.parametrize(
    "names",
    [
        ("bob_02_blocking_p2p.ipynb", "BOB_02_blocking_p2p.ipynb"),
        ("bob/02.ipynb", "b\u043eb/02.ipynb"),
        ("bob/02.ipynb", "bob./02.ipynb"),
        ("bob/02.ipynb", "-bob/02.ipynb"),
        ("bob/02.ipynb", "bob /02.ipynb"),
    ],
    ids=lambda names: names[1],
)
def test_whoever_takes_a_name_like_anothers_does_not_change_it(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    jobs, notices = find_submissions(put(tmp_path, *names))
    learners = [job.learner for job in jobs]
    assert "bob" in learners and len(set(learners)) == 2
    assert len(notices) == 1 and "not put together" in notices[0]


@pytest.mark.parametrize("names", [("bob", "b\u043eb"), ("andr\u00e9", "andre\u0301")])
def test_names_that_look_the_same_are_told_so_that_one_sees_the_difference(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    _, (notice,) = find_submissions(put(tmp_path, *(f"{name}/02.ipynb" for name in names)))
    assert all(ascii(f"{name}/") in notice for name in names)


def test_the_map_of_the_course_is_no_submission(tmp_path: Path) -> None:
    jobs, notices = find_submissions(put(tmp_path, "anna/02.ipynb", "anna/home.ipynb"))
    assert [job.file for job in jobs] == ["anna/02.ipynb"] and not notices


def test_too_many_files_of_one_cost_nobody_else(tmp_path: Path) -> None:
    names = [f"eve/{n:04}.ipynb" for n in range(MOST_FILES + 50)]
    jobs, notices = find_submissions(put(tmp_path, *names, "bob/02.ipynb"))
    assert [job.learner for job in jobs if job.learner != "eve"] == ["bob"]
    assert len(jobs) == MOST_FILES + 1
    assert notices == [f"eve: more than {MOST_FILES} notebooks, the others passed over"]


def test_a_folder_called_just_so_keeps_its_name_next_to_two_other_spellings(tmp_path: Path) -> None:
    put(tmp_path, "anna/02.ipynb", "anna /02.ipynb", "anna_02_blocking_p2p.ipynb")
    jobs, notices = find_submissions(tmp_path)
    by_file = {job.file: job.learner for job in jobs}
    assert by_file["anna/02.ipynb"] == "anna"
    assert len(set(by_file.values())) == 3
    assert len(notices) == 1 and "not put together" in notices[0]


def test_each_file_knows_how_many_its_learner_has_handed_in(tmp_path: Path) -> None:
    put(tmp_path, "anna/02.ipynb", "anna/03.ipynb", "bela/02.ipynb")
    jobs, _ = find_submissions(tmp_path)
    assert [(job.learner, job.of) for job in jobs] == [("anna", 2), ("anna", 2), ("bela", 1)]
