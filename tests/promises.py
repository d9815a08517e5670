"""The promises of the project, each with its tests and its cost in lines of code.

`python -m tests.promises` counts the lines and writes docs/promises.md. The lines of a file that serves
several promises count for each of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "promises.md"


@dataclass(frozen=True)
class Promise:
    """One thing that users rely on.

    kind: its group in the table. user: who would miss it. code, tests: glob patterns of its own files.
    is_core: whether the course is incomplete without it.
    """

    kind: str
    name: str
    user: str
    code: tuple[str, ...]
    tests: tuple[str, ...]
    is_core: bool = False

    def helper_files(self) -> set[Path]:
        return set(_matches("helpers", self.code))

    def test_files(self) -> set[Path]:
        return set(_matches("tests", self.tests))


def _matches(folder: str, patterns: tuple[str, ...]) -> Iterator[Path]:
    for pattern in patterns:
        for path in (ROOT / folder).glob(pattern):
            if path.is_file() and path.suffix in {".py", ".js", ".css", ".html", ".xml", ".sh"}:
                yield path


def _command(name: str, user: str, code: str, tests: str, is_core: bool = False) -> Promise:
    return Promise("Commands", name, user, tuple(code.split()), tuple(tests.split()), is_core)


COMMANDS = (
    _command(
        "lab", "every learner", "course/home.py course/workspace.py", "course/test_cli.py", True
    ),
    _command(
        "check",
        "learners in a terminal, and CI jobs",
        "checks/check_notebook.py course/targets.py",
        "course/test_cli.py notebooks/test_graded.py",
        True,
    ),
    _command(
        "watch",
        "learners using a different editor",
        "course/watch_command.py course/saves.py",
        "course/test_watch.py",
    ),
    _command("hint", "learners", "course/hints.py", "course/test_hints.py", True),
    _command(
        "progress",
        "learners, and instructors who want to see a page of skills",
        "course/progress.py course/can_do.py",
        "course/test_progress.py",
        True,
    ),
    _command("reset", "learners", "course/workspace.py", "course/test_workspace.py", True),
    _command(
        "doctor",
        "everyone whose machine does not meet all requirements",
        "course/doctor.py",
        "course/test_doctor.py",
        True,
    ),
    _command(
        "run",
        "everyone debugging their own script",
        "scripts/*.py scripts/templates/*",
        "scripts/test_*.py",
    ),
    _command("grade", "graders", "grading/*.py", "grading/test_*.py", True),
    _command("release", "instructors", "grading/release.py", "grading/test_release.py", True),
    _command(
        "gradescope",
        "classes on Gradescope",
        "grading/reports/gradescope.py grading/reports/gradescope_files/*",
        "grading/reports/test_gradescope.py",
    ),
    _command("room", "instructors teaching in class", "room/*.py room/page/*", "room/*.py"),
    _command(
        "explain",
        "users whose job hangs on a cluster",
        "dumps/*.py",
        "dumps/*.py",
    ),
    _command(
        "sessions",
        "instructors planning a semester",
        "teaching/program.py",
        "teaching/test_program.py",
    ),
    _command(
        "slides",
        "instructors",
        "teaching/slides.py teaching/reveal.py teaching/prose.py teaching/page/*",
        "teaching/test_slides.py",
    ),
    _command("teach", "instructors", "teaching/teacher_pages.py", "teaching/test_teacher_pages.py"),
    _command(
        "mistakes",
        "authors of exercises",
        "checks/author.py checks/prove_answers.py checks/edits.py",
        "checks/test_mistakes.py",
        True,
    ),
    _command("build", "authors", "course/build.py", "course/test_build.py", True),
    _command(
        "outputs", "authors", "course/outputs.py course/claims.py", "course/test_outputs.py", True
    ),
    _command(
        "site",
        "readers who have not installed the course",
        "course/site.py course/page.py",
        "browser/test_site.py",
    ),
)
PLATFORMS = tuple(
    Promise(
        "Platforms",
        title,
        user,
        (f"grading/platforms/{module}.py",),
        ("grading/test_platforms.py", "grading/reports/test_gradebooks.py"),
    )
    for module, title, user in (
        ("blackboard", "Blackboard", "classes on Blackboard"),
        ("brightspace", "Brightspace", "classes on Brightspace"),
        ("canvas", "Canvas", "classes on Canvas"),
        ("folders", "Folders of files", "graders without a platform"),
        ("github", "GitHub Classroom", "classes on GitHub"),
        ("moodle", "Moodle", "classes on Moodle"),
    )
)
REPORTS = tuple(
    Promise("Reports", name, user, tuple(code.split()), tuple(tests.split()), is_core)
    for name, user, code, tests, is_core in (
        (
            "a page for each learner",
            "learners",
            "grading/reports/pages.py grading/reports/outcomes.py",
            "grading/reports/test_learner_page.py",
            True,
        ),
        (
            "the class page",
            "instructors",
            "grading/reports/class_page.py grading/reports/mistakes.py",
            "grading/reports/test_class_page.py",
            True,
        ),
        (
            "gradebooks",
            "graders uploading points",
            "grading/reports/gradebooks.py",
            "grading/reports/test_gradebooks.py",
            True,
        ),
        (
            "junit.xml",
            "CI jobs outside GitHub",
            "grading/reports/junit.py",
            "grading/reports/test_ci.py",
            False,
        ),
        (
            "summary.md and GitHub annotations",
            "learners and graders on GitHub",
            "grading/reports/github.py",
            "grading/reports/test_ci.py",
            False,
        ),
        (
            "records.sqlite",
            "graders examining a disputed answer",
            "grading/reports/database.py",
            "grading/reports/test_database.py",
            False,
        ),
    )
)
SANDBOXES = (
    Promise(
        "Sandbox levels",
        "bubblewrap",
        "graders",
        (
            "grading/sandbox/bubblewrap*.py",
            "grading/sandbox/cgroup.py",
            "grading/sandbox/seccomp.py",
        ),
        ("grading/hostile/*.py", "grading/test_cgroup.py"),
        True,
    ),
    Promise(
        "Sandbox levels",
        "landlock",
        "graders using a container that forbids user namespaces, such as Gradescope's",
        ("grading/sandbox/landlock*.py",),
        ("grading/test_landlocked.py",),
    ),
    Promise(
        "Sandbox levels",
        "none",
        "learners checking their own files",
        ("grading/sandbox/levels.py",),
        ("grading/test_grader.py",),
        True,
    ),
)
LAUNCHES = tuple(
    Promise("Launch modes", name, user, tuple(code.split()), tuple(tests.split()), is_core)
    for name, user, code, tests, is_core in (
        ("launch", "every learner", "ranks/*.py", "ranks/*.py", True),
        (
            "%%ranks",
            "learners working with live ranks",
            "ranks/magics.py ranks/cells.py",
            "kernel/*.py",
            True,
        ),
        (
            "torchrun",
            "learners in notebooks 18 to 20",
            "jobs/torchrun*.py jobs/supervisor.py jobs/stacks.py",
            "jobs/test_torchrun.py jobs/test_stacks.py",
            True,
        ),
        ("mpiexec", "learners in notebook 22", "jobs/mpiexec.py", "jobs/test_mpiexec.py", True),
        ("hosts", "classes with several machines", "hosts/*.py", "hosts/*.py", False),
        (
            "imagine",
            "learners who want to run single ranks of a large world",
            "imagined/*.py",
            "imagined/*.py",
            True,
        ),
        (
            "grading through Dask",
            "graders of large classes",
            "grading/scheduler.py",
            "grading/test_scheduler.py",
            False,
        ),
    )
)
PROMISES = (*COMMANDS, *PLATFORMS, *REPORTS, *SANDBOXES, *LAUNCHES)


def line_count(paths: set[Path]) -> int:
    """Return the number of lines, rounded to hundreds, so that a small change leaves the page alone."""
    count = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)
    return max(100, round(count, -2))


def rows(promises: tuple[Promise, ...] = PROMISES) -> Iterator[str]:
    """Yield the page's lines: a table for each kind."""
    kind = ""
    for promise in promises:
        if promise.kind != kind:
            kind = promise.kind
            yield from (
                "",
                f"## {kind}",
                "",
                "| promise | who would miss it | tests | helpers, tests | |",
                "|---|---|---|---|---|",
            )
        tests = ", ".join(f"`tests/{pattern}`" for pattern in promise.tests)
        lines = f"{line_count(promise.helper_files()):,}, {line_count(promise.test_files()):,}"
        level = "core" if promise.is_core else "optional"
        yield f"| {promise.name} | {promise.user} | {tests} | {lines} | {level} |"


HEAD = """# Promises

This page lists the features on which users rely, with the tests of each promise and the number of lines
that the promise costs, in hundreds. The course is incomplete without a *core* promise. If an *optional*
promise has no users left, remove its files and its row. Before adding a command, platform, report, sandbox
level or launch mode, add a row.

To count the lines again, run `python -m tests.promises`. A file used by several promises counts for each
of them."""


def page() -> str:
    return "\n".join([HEAD, *rows()]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
