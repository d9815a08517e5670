"""Read all inputs of `course grade` before any answer runs, so that errors are found at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from helpers.checks.headings import match_notebook
from helpers.checks.mistakes import instructor_folder, read_mistakes
from helpers.course.workspace import WorkspaceError, find_workspace
from helpers.grading.batch import read_or_create_secret
from helpers.grading.grade_options import CannotGrade, Setting
from helpers.grading.people import People, read_people
from helpers.grading.release import find_differences
from helpers.grading.submissions import Job, find_submissions


@dataclass(frozen=True)
class Inputs:
    """The submissions, and the class.

    Args:
        notebooks: The notebooks that count, from the command line.
        secret: The secret of the hidden cases.
        notices: Lines for the instructor, shown before grading.
    """

    jobs: tuple[Job, ...]
    people: People
    notebooks: tuple[str, ...]
    secret: str
    notices: tuple[str, ...]


def read_inputs(setting: Setting) -> Inputs:
    """Read the folder and the files about its class. Raise CannotGrade if any of them cannot be used."""
    folder, out = setting.folder, setting.out
    if out.resolve().is_relative_to(folder.resolve()):
        raise CannotGrade(
            f"{out} is inside {folder}, among the submissions: choose a different folder."
        )
    files = (setting.roster, setting.policy, setting.overrides, setting.groups)
    submissions = find_submissions(folder, [path for path in files if path is not None])
    notices = list(submissions.notices)
    _read_own_mistakes()
    try:
        if setting.release is not None:
            notices += find_differences(setting.release, find_workspace())
        named = [match_notebook(name) for name in setting.notebooks.replace(",", " ").split()]
    except (WorkspaceError, LookupError) as error:
        raise CannotGrade(str(error.args[0])) from None
    people = read_people(setting, submissions.sources)
    notices += people.notices
    jobs, secret = tuple(submissions.jobs), _secret(out)
    return Inputs(jobs, people, tuple(named), secret, tuple(notices))


def _read_own_mistakes() -> None:
    """Read the instructor's mistakes, so that an error is reported before grading begins."""
    for path in sorted(instructor_folder().glob("*.py")):
        try:
            read_mistakes(path.read_text(encoding="utf-8"), str(path))
        except (OSError, ValueError) as error:
            raise CannotGrade(str(error)) from None


def _secret(out: Path) -> str:
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise CannotGrade(f"{out} is not a folder: choose a folder for the results.")
    try:
        # make it private, because on a hub teachers and learners share a machine
        out.mkdir(mode=0o700, parents=True, exist_ok=True)
        return read_or_create_secret(out)
    except OSError as error:
        raise CannotGrade(f"{out} cannot be written: {error.strerror}.") from None
