"""Submissions are found in any layout of folders, without counting other files."""

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

from helpers.grading.submissions import MAX_FILES, Job, NoSubmissions, find_submissions
from tests.grading.notebooks import write_notebook


def found_in(folder: Path) -> tuple[tuple[Job, ...], list[str]]:
    found = find_submissions(folder)
    return found.jobs, list(found.notices)


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
        ("fay_22_other_roads.ipynb", "fay"),  # the notebook's former name
    ],
)
def test_file_or_folder_identifies_learner(tmp_path: Path, name: str, learner: str) -> None:
    jobs, notices = found_in(put(tmp_path, name))
    assert [(job.learner, job.file) for job in jobs] == [(learner, name)]
    assert notices == []


def test_every_file_has_learner_or_notice(tmp_path: Path) -> None:
    put(tmp_path, "a/x.ipynb", "a/.ipynb_checkpoints/x.ipynb", "b/notes.txt", "__MACOSX/y.ipynb")
    put(tmp_path, "grades.csv", "README.md", ".DS_Store", "._a.ipynb", "a/link/y.ipynb", ".env")
    (tmp_path / "link.ipynb").symlink_to(tmp_path / "a" / "x.ipynb")
    (tmp_path / "a" / "inside.ipynb").symlink_to(tmp_path / "b" / "notes.txt")
    (tmp_path / "away").symlink_to("/")
    (tmp_path / "empty").mkdir()
    jobs, notices = found_in(tmp_path)
    assert [(job.learner, job.file) for job in jobs] == [
        ("a", "a/link/y.ipynb"),
        ("a", "a/x.ipynb"),
        ("away", "away"),
        ("b", "b/notes.txt"),
        ("empty", "empty"),
        ("link", "link.ipynb"),
    ]
    assert sorted(notices) == [
        "README.md: not a notebook, ignored",
        "a/inside.ipynb: a symbolic link, ignored",
        "b: no notebook was found in this folder and its subfolders",
        "empty: no notebook was found in this folder and its subfolders",
        "grades.csv: not a notebook, ignored",
    ]


def test_rejects_packed_export(tmp_path: Path) -> None:
    (tmp_path / "export.zip").write_bytes(b"PK")
    with pytest.raises(NoSubmissions, match=r"export\.zip is an archive: unpack it"):
        find_submissions(tmp_path / "export.zip")


def test_learner_names_lose_terminal_escapes(tmp_path: Path) -> None:
    jobs, _ = found_in(put(tmp_path, "\x1b[31mred/x.ipynb"))
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
def test_separates_people_with_same_name(tmp_path: Path, names: tuple[str, str]) -> None:
    jobs, notices = found_in(put(tmp_path, *names))
    assert len({job.learner for job in jobs}) == 2
    assert len(notices) == 1 and "kept apart" in notices[0]
    if "Cy" in names[0]:
        assert sorted(job.learner for job in jobs) == ["Cy Lee (12)", "Cy Lee (13)"]


def test_groups_many_files_by_learner(tmp_path: Path) -> None:
    names = (
        "anna_02_blocking_p2p.ipynb",
        "anna_03_nonblocking_p2p.ipynb",
        "03_nonblocking_p2p-bela.ipynb",
    )
    jobs, notices = found_in(put(tmp_path, *names))
    assert [job.learner for job in jobs] == ["anna", "anna", "bela"] and not notices


@pytest.mark.extended
def test_learner_name_ignores_set_order(tmp_path: Path) -> None:
    put(tmp_path, "dora_03_nonblocking_p2p_02_blocking_p2p.ipynb")
    script = (
        "import sys; from pathlib import Path; from helpers.grading.submissions import find_submissions; "
        "print(find_submissions(Path(sys.argv[1])).jobs[0].learner)"
    )
    names = set()
    for seed in "0123":
        env = {**os.environ, "PYTHONHASHSEED": seed}
        words = [sys.executable, "-c", script, str(tmp_path)]
        names.add(subprocess.run(words, env=env, capture_output=True, check=True, text=True).stdout)
    assert len(names) == 1 and "dora" in names.pop()


@pytest.mark.parametrize("what", ["missing", "file", "empty"])
def test_no_submissions_error_fits_one_line(tmp_path: Path, what: str) -> None:
    folder = tmp_path / what
    if what == "file":
        folder.write_text("")
    elif what == "empty":
        folder.mkdir()
    with pytest.raises(NoSubmissions) as raised:
        find_submissions(folder)
    assert "\n" not in str(raised.value)
    assert what in str(raised.value)


def write(folder: Path, name: str, *exercises: str) -> None:
    """Write a notebook that attempts some exercises."""
    write_notebook(folder / name, *(f"def {each}(rank): return rank" for each in exercises))


def learners_in(folder: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for job in found_in(folder)[0]:
        found.setdefault(job.learner, []).append(job.file)
    return found


COPIES = (
    "{}-Copy1", "{} - Copy", "{} - Copy (2)", "{}(2)", "{} (3)", "{} copy", "{} copy 2", "{}_copy",
    "Copy of {}", "Copy (2) of {}", "Kopie von {}", "{} - Kopie", "{} – Kopie (3)", "Copie de {}",
    "{} - Copie", "Copia de {}", "{} (copy)", "{} (another copy)", "{} - копия", "{} - 副本",
    "{} (Ivy's conflicted copy 2026-10-12)", "{} (conflicted copy 2026-10-12 101010)", "{} (Case Conflict)",
    "{} (In Konflikt stehende Kopie von Ivy 2026-10-12)", "{} (Copie en conflit de Ivy 2026-10-12)",
    "{}.sync-conflict-20261012-101010-ABCDEFG", "{}_conflict-20261012-101010",
)  # fmt: skip


@pytest.mark.parametrize("mark", COPIES)
def test_assigns_copies_to_their_learner(tmp_path: Path, mark: str) -> None:
    put(tmp_path, *(f"{each}.ipynb" for each in ("ann_00_start_here", "bob", mark.format("bob"))))
    put(
        tmp_path,
        f"{mark.format('ann_00_start_here')}.ipynb",
        f"{mark.format('cy_00_start_here')}.ipynb",
    )
    assert {each: len(files) for each, files in learners_in(tmp_path).items()} == {
        "ann": 2,
        "bob": 2,
        "cy": 1,
    }


@pytest.mark.parametrize("before", ["", "# mine\n", "\t", "# mine\r\n", "@decorated\n\tasync "])
def test_reads_functions_in_single_string(tmp_path: Path, before: str) -> None:
    for name, function in (("anna_02", "ping_pong"), ("bela_03", "safe_buffers")):
        write_notebook(tmp_path / f"{name}.ipynb", f"{before}def {function}(rank): return rank")
    assert set(learners_in(tmp_path)) == {"anna", "bela"}


def test_keeps_name_resembling_copy_mark(tmp_path: Path) -> None:
    put(tmp_path, "copy.ipynb", "Kopie.ipynb", "(2).ipynb")
    assert set(learners_in(tmp_path)) == {"copy", "Kopie", "(2)"}


def test_content_confirms_notebook_number_in_filename(tmp_path: Path) -> None:
    write(tmp_path, "anna_02.ipynb", "ping_pong")
    write(tmp_path, "anna_03.ipynb", "safe_buffers")
    write(tmp_path, "02-bela.ipynb", "ping_pong")
    for number in ("01", "02", "03"):
        write(tmp_path, f"student_{number}.ipynb", "count_votes", "my_slice")
    assert learners_in(tmp_path) == {
        "anna": ["anna_02.ipynb", "anna_03.ipynb"],
        "bela": ["02-bela.ipynb"],
        **{f"student_{number}": [f"student_{number}.ipynb"] for number in ("01", "02", "03")},
    }


@pytest.mark.parametrize(
    "names",
    [
        ("kay_2_00_start_here.ipynb", "zoe_1_00_start_here.ipynb", "pam_1_00_start_here.ipynb"),
        ("kay_2_10_dataparallel_vs_ddp.ipynb", "zoe_1_10_dataparallel_vs_ddp.ipynb"),
        ("kay_2_10_homework.ipynb", "zoe_2_10_homework.ipynb"),
        ("kay_12_10_homework.ipynb", "zoe_13_10_homework.ipynb"),
    ],
)
def test_non_canvas_numbers_match_no_learner(tmp_path: Path, names: tuple[str, ...]) -> None:
    found = find_submissions(put(tmp_path, *names))
    assert len({job.learner for job in found.jobs}) == len(names)
    assert not any(source.number for source in found.sources.values())


def test_reads_late_and_anonymous_canvas_submissions(tmp_path: Path) -> None:
    # names made by lib/content_zipper.rb of instructure/canvas-lms
    put(
        tmp_path,
        "leeann_101_9001_00_start_here.ipynb",
        "leeann_LATE_101_9002_01_process_groups-1.ipynb",
    )
    put(tmp_path, "leeann_101_text.html", "raybob_102_9003_x.ipynb", "ohcy_103_link.html")
    found = find_submissions(tmp_path)
    assert {each: source.number for each, source in found.sources.items()} == {
        "leeann (101)": "101",
        "raybob (102)": "102",
        "ohcy (103)": "103",
    }
    assert [job.file for job in found.jobs if job.learner == "leeann (101)"] == [
        "leeann_101_9001_00_start_here.ipynb",
        "leeann_LATE_101_9002_01_process_groups-1.ipynb",
    ]
    put(other := tmp_path / "other", "anon_Ab3dE_4711_x.ipynb", "LATE_anon_Ab3dE_4712_y.ipynb")
    put(other, "anon_Zz9zZ_4713_x.ipynb")
    assert {who: len(files) for who, files in learners_in(other).items()} == {
        "anon_Ab3dE": 2,
        "anon_Zz9zZ": 1,
    }


def test_reads_moodle_exports_of_both_layouts(tmp_path: Path) -> None:
    # names made by mod/assign/classes/downloader.php of moodle/moodle
    put(
        tmp_path,
        "Ann Lee_22_assignsubmission_file/00_start_here.ipynb",
        "Ann Lee_22_assignsubmission_onlinetext/onlinetext.html",
    )
    put(
        tmp_path,
        "Bob Ray_23_assignsubmission_file_hw.ipynb",
        "Bob Ray_23_assignsubmission_file_hw2.ipynb",
    )
    put(
        tmp_path,
        "Team A_7_assignsubmission_file/x.ipynb",
        "Default group_assignsubmission_file/x.ipynb",
    )
    put(tmp_path, "Participant_1011_assignsubmission_file/x.ipynb")
    assert {who: len(files) for who, files in learners_in(tmp_path).items()} == {
        "Ann Lee": 1,
        "Bob Ray": 2,
        "Default group": 1,
        "Participant 1011": 1,
        "Team A": 1,
    }


def test_reads_exports_in_separate_folders(tmp_path: Path) -> None:
    for assignment, numbers in (("CS101-One-4711", (22, 23)), ("later/CS101-Two-4712", (31, 32))):
        for who, number in zip(("Ann Lee", "Bob Ray"), numbers, strict=True):
            put(tmp_path, f"{assignment}/{who}_{number}_assignsubmission_file/x.ipynb")
    put(tmp_path, "later/README.md", "later/cy/x.ipynb", "dora/x.ipynb")
    put(tmp_path, "lab-submissions/lab-emil/x.ipynb", "lab-submissions/lab-fay-b/x.ipynb")
    put(
        tmp_path,
        "00_start_here/gus.ipynb",
        "00_start_here/hana.ipynb",
        "01_process_groups/gus.ipynb",
    )
    found = {who: len(files) for who, files in learners_in(tmp_path).items()}
    assert found == {
        **{
            "Ann Lee": 2,
            "Bob Ray": 2,
            "cy": 1,
            "dora": 1,
            "emil": 1,
            "fay-b": 1,
            "gus": 2,
            "hana": 1,
        },
    }


def test_recognizes_class_in_lone_folder(
    tmp_path: Path,
) -> None:
    put(tmp_path / "one", "class/ann/00_start_here.ipynb", "class/bob/lab/00_start_here.ipynb")
    assert set(learners_in(tmp_path / "one")) == {"ann", "bob"}
    put(tmp_path / "two", "ann/work/x.ipynb", "ann/solutions/x.ipynb", "ann/old/x.ipynb")
    assert set(learners_in(tmp_path / "two")) == {"ann"}
    put(tmp_path / "three", "class/ann/x.ipynb", "class/bob/x.ipynb", "zoe/x.ipynb")
    jobs, (notice,) = found_in(tmp_path / "three")
    assert {job.learner for job in jobs} == {
        "class",
        "zoe",
    } and "(ann, bob) contain the same notebook" in notice


def test_file_with_other_extension_has_learner(tmp_path: Path) -> None:
    put(
        tmp_path,
        *(f"p{n}_00_start_here.{end}" for n, end in enumerate(ENDINGS)),
        ".zoe_00_start_here.ipynb",
    )
    put(
        tmp_path,
        ".kim/00_start_here.ipynb",
        "bo/answers.zip",
        "bo/00_start_here.ipynb",
        "cy/00_start_here.pdf",
    )
    found = learners_in(tmp_path)
    assert set(found) == {*(f"p{n}" for n in range(len(ENDINGS))), ".zoe", ".kim", "bo", "cy"}
    assert found["bo"] == ["bo/00_start_here.ipynb", "bo/answers.zip"]


ENDINGS = (
    "zip",
    "ipynb.zip",
    "ipynb.txt",
    "ipynb.json",
    "json",
    "py",
    "html",
    "pdf",
    "tar.gz",
    "docx",
)


def test_html_copy_adds_no_submission(tmp_path: Path) -> None:
    put(tmp_path, "ann_00_start_here.ipynb", "ann_00_start_here.html", "ann_01_process_groups.html")
    assert learners_in(tmp_path) == {
        "ann": ["ann_00_start_here.ipynb", "ann_01_process_groups.html"]
    }


def test_reports_filename_without_learner(tmp_path: Path) -> None:
    _, notices = found_in(put(tmp_path, "00_start_here.ipynb", "ann_00_start_here.ipynb"))
    assert notices == ["00_start_here.ipynb: its name does not show which learner it belongs to"]


NAME = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="/\0"), min_size=1, max_size=30
).filter(lambda name: name not in {".", ".."} and len(name.encode()) < 120)


@pytest.mark.extended
@settings(max_examples=60)
@given(
    st.lists(st.tuples(NAME, NAME), max_size=6, unique=True),
    st.lists(NAME, max_size=4, unique=True),
)
def test_every_notebook_has_exactly_one_learner(
    inside: list[tuple[str, str]], files: list[str]
) -> None:
    with TemporaryDirectory() as folder:
        for above, name in inside:
            with suppress(OSError):  # a file already has this name, or this file system refuses it
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
            jobs, notices = found_in(Path(folder))
        except NoSubmissions:
            jobs, notices = [], []
        assert {job.path for job in jobs} >= set(shown)
        assert len({job.path for job in jobs}) == len(jobs)
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
def test_reads_canvas_and_browser_filenames(tmp_path: Path, file: str, learner: str) -> None:
    ((job,), notices) = found_in(put(tmp_path, file))
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
def test_similar_name_never_changes_other_name(tmp_path: Path, names: tuple[str, str]) -> None:
    jobs, notices = found_in(put(tmp_path, *names))
    learners = [job.learner for job in jobs]
    assert "bob" in learners and len(set(learners)) == 2
    assert len(notices) == 1 and "kept apart" in notices[0]


@pytest.mark.parametrize("names", [("bob", "b\u043eb"), ("andr\u00e9", "andre\u0301")])
def test_notice_distinguishes_lookalike_names(tmp_path: Path, names: tuple[str, str]) -> None:
    _, (notice,) = found_in(put(tmp_path, *(f"{name}/02.ipynb" for name in names)))
    assert all(ascii(f"{name}/") in notice for name in names)


def test_ignores_home_ipynb(tmp_path: Path) -> None:
    jobs, notices = found_in(put(tmp_path, "anna/02.ipynb", "anna/home.ipynb"))
    assert [job.file for job in jobs] == ["anna/02.ipynb"] and not notices


def test_excess_files_affect_only_own_learner(tmp_path: Path) -> None:
    names = [f"eve/{n:04}.ipynb" for n in range(MAX_FILES + 50)]
    jobs, notices = found_in(put(tmp_path, *names, "bob/02.ipynb"))
    assert [job.learner for job in jobs if job.learner != "eve"] == ["bob"]
    assert len(jobs) == MAX_FILES + 1
    assert notices == [f"eve: more than {MAX_FILES} notebooks, the others were ignored"]


def test_keeps_exact_folder_name_among_spellings(tmp_path: Path) -> None:
    put(tmp_path, "anna/02.ipynb", "anna /02.ipynb", "anna_02_blocking_p2p.ipynb")
    jobs, notices = found_in(tmp_path)
    by_file = {job.file: job.learner for job in jobs}
    assert by_file["anna/02.ipynb"] == "anna"
    assert len(set(by_file.values())) == 3
    assert len(notices) == 1 and "kept apart" in notices[0]


def test_each_job_counts_files_of_learner(tmp_path: Path) -> None:
    put(tmp_path, "anna/02.ipynb", "anna/03.ipynb", "bela/02.ipynb")
    jobs, _ = found_in(tmp_path)
    assert [(job.learner, job.file_count) for job in jobs] == [
        ("anna", 2),
        ("anna", 2),
        ("bela", 1),
    ]
