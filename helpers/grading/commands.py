"""The commands of `course` for grading, and for handing out the notebooks.

Modules that need torch are imported only by the commands that use them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import click

from helpers.course import workspace as workspaces
from helpers.course.command_parts import (
    TO_TEACH,
    Command,
    CommandError,
    Interrupted,
    as_json_option,
    relative_path,
)


@click.command(cls=Command, title=TO_TEACH)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="Folder for the results."
)
@click.option(
    "--sandbox",
    type=click.Choice(["auto", "bubblewrap", "landlock", "none"]),
    default="auto",
    help="The sandbox for answers; auto chooses the strongest one that works here.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 256),
    help="Submissions graded in parallel (default: two per core).",
)
@click.option("--roster", type=click.Path(path_type=Path), help="Your platform's export, as CSV.")
@click.option(
    "--pictures",
    type=click.Choice(["failed", "all", "none"]),
    default="failed",
    help="Which visible runs to draw for learners: all, failed or none.",
)
@click.option(
    "--release",
    type=click.Path(path_type=Path),
    help="The released bundle; warn if its checks differ from these.",
)
@click.option("--scheduler", default="", help="Address of a Dask cluster to grade on.")
@click.option("--title", help="Name of the class in reports (default: the folder's name).")
@click.option(
    "--notebooks",
    default="",
    help='Notebooks that count, such as "04 05" (default: all that a quarter of the learners submitted).',
)
@click.option("--github", is_flag=True, help="Print annotations for GitHub's checks, too.")
@click.option("--verify", is_flag=True, help="Grade a second time and report each difference.")
@click.option(
    "--policy",
    type=click.Path(path_type=Path),
    help="How points are counted (default: policy.toml in OUT, if it exists).",
)
@click.option(
    "--overrides",
    type=click.Path(path_type=Path),
    help="Points that you set by hand (default: overrides.csv in OUT, if it exists).",
)
@click.option(
    "--groups",
    type=click.Path(path_type=Path),
    help="Learners who submitted one file together (default: groups.csv in OUT, if it exists).",
)
@click.option("--again", is_flag=True, help="Ignore cached results and regrade everything.")
@as_json_option
def grade(folder: Path, out: Path, as_json: bool, **options: Any) -> None:
    """Grade a folder of notebooks.

    FOLDER has one file for each learner, one folder for each learner, or an LMS's export. If grading is
    interrupted, continue by running the same command again. Exits with 1 if a submission could not be read
    or graded, or a learner is not on the roster; with 2 if nothing could be done.
    """
    from helpers.grading.command import grade_folder, result_as_data
    from helpers.grading.grade_options import CannotGrade, Setting
    from helpers.views.plain import for_log

    try:
        setting = Setting(folder, out, **options)
        if as_json:
            from helpers.course.as_json import only_json, write

            with only_json() as stream:
                graded = grade_folder(setting)
            write(result_as_data(graded), stream)
        else:
            graded = grade_folder(setting)
        sys.exit(graded.exit_code)
    except CannotGrade as error:
        raise CommandError(for_log(f"Cannot grade: {error}")) from error
    except KeyboardInterrupt as error:
        raise Interrupted(
            "Interrupted. Run the same command again to continue where it stopped."
        ) from error


@click.command(cls=Command, title=TO_TEACH)
@click.option("--with-solutions", is_flag=True, help="Include solutions/ (enables show_me).")
@click.option(
    "--without-mistakes",
    is_flag=True,
    help="Leave out the known mistakes: wrong answers then get no specific advice.",
)
@click.option(
    "--with-own-mistakes",
    is_flag=True,
    help="Include your own mistakes. Careful: these are learners' programs.",
)
@click.argument("out", type=click.Path(path_type=Path))
def release(
    out: Path, with_solutions: bool, without_mistakes: bool, with_own_mistakes: bool
) -> None:
    """Write the bundle for learners.

    The course without solutions, tests and grader, with a manifest of SHA-256 sums.
    """
    from helpers.grading.release import ReleaseError, describe_mistakes
    from helpers.grading.release import write_bundle as write

    try:
        files = write(
            workspaces.find_workspace(),
            out,
            with_solutions=with_solutions,
            with_mistakes=not without_mistakes,
            with_own=with_own_mistakes,
        )
    except ReleaseError as error:
        click.echo(error, err=True)
        sys.exit(2)
    click.echo(
        f"{len(files)} files in {relative_path(out)}. Zip this folder, or put it where learners "
        f"can get it."
    )
    if not without_mistakes:
        click.echo(describe_mistakes(workspaces.find_workspace()))


@click.command(cls=Command, title=TO_TEACH)
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--secret", required=True, help="Secret for the hidden cases; keep it safe.")
@click.option(
    "--notebooks", default="", help='Notebooks that count, such as "04 05" (default: all).'
)
@click.option("--policy", type=click.Path(path_type=Path), help="A policy.toml with the weights.")
def gradescope(out: Path, secret: str, notebooks: str, policy: Path | None) -> None:
    """Write an autograder as a zip for Gradescope.

    For example: course gradescope autograder.zip --secret "something long" --notebooks "04 05"
    """
    from helpers.checks.headings import UnknownExercise, match_notebook
    from helpers.grading.grade_options import CannotGrade
    from helpers.grading.reports.gradescope import write_zip

    archive = BytesIO()
    try:
        named = [match_notebook(name) for name in notebooks.replace(",", " ").split()]
        write_zip(archive, workspaces.find_workspace().root, secret, named, policy)
        with out.open("xb") as file:  # never overwrite a different file
            file.write(archive.getvalue())
    except UnknownExercise as error:
        click.echo(f"--notebooks: {error}", err=True)
        sys.exit(2)
    except CannotGrade as error:
        click.echo(error, err=True)
        sys.exit(2)
    except OSError as error:
        click.echo(f"{out} cannot be written: {error.strerror}.", err=True)
        sys.exit(2)
    click.echo(f"{relative_path(out)} contains the secret: upload it only to Gradescope.")


@click.command(cls=Command, title=TO_TEACH, hidden=True)
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--only", metavar="EXERCISE", help="Only this exercise.")
@click.option("--group", type=int, help="With --only: show the program of this group.")
@click.option("--say", default="", help="With --group: the message to show for this mistake.")
@click.option("--sandbox", default="auto", help="The sandbox; see `course grade`.")
def class_mistakes(
    folders: Sequence[str], only: str | None, group: int | None, say: str, sandbox: str
) -> None:
    """Group the wrong answers of classes by their behavior: `course mistakes RESULTS` calls this."""
    from helpers.grading.class_mistakes import print_mistakes

    sys.exit(print_mistakes([Path(name) for name in folders], only, group, say, sandbox))
