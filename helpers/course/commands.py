"""The commands of `course` for learners.

Modules that need torch are imported only by the commands that use them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from helpers.course import workspace as workspaces
from helpers.course.command_parts import (
    TO_LEARN,
    Command,
    CommandError,
    as_json_option,
    relative_path,
)
from helpers.course.paths import path_names


@click.command(cls=Command, title=TO_LEARN, context_settings={"ignore_unknown_options": True})
@click.argument("lab_args", nargs=-1, type=click.UNPROCESSED)
def lab(lab_args: tuple[str, ...]) -> None:
    """Open the course in JupyterLab.

    First copies missing notebooks to your folder, without overwriting anything. This folder is work/ by
    default, ~/real-ranks on a shared installation, or REAL_RANKS_WORK if it is set.
    Further arguments are passed to JupyterLab, and `jupyter lab --help` lists them:
    course lab --no-browser --port 8899
    """
    workspace = workspaces.find_workspace()
    extra = []
    if os.geteuid() == 0 and "--allow-root" not in lab_args:
        # A container's only user is often root, but JupyterLab refuses to run as root unless this is allowed.
        # Unless the arguments change this, its server requires a token and listens only on this machine.
        click.echo(
            "Running JupyterLab as root: anyone with its token can do anything on this machine."
        )
        extra.append("--allow-root")
    new = workspaces.copy_missing_notebooks(workspace)
    if new:
        click.echo(
            f"Copied into {relative_path(workspace.work)}: {', '.join(path.name for path in new)}"
        )
    from helpers.course.home import write_home

    opened = write_home(workspace.work)
    if not opened.is_relative_to(workspace.root):
        click.echo(f"You work in {workspace.work}.")
    workspaces.set_up_jupyter()
    extra += workspaces.LOOK
    # Because the file is an argument, a browser started by JupyterLab opens it. With this setting, the
    # printed URL also opens the file.
    extra.append(f"--LabApp.default_url=/lab/tree/{opened.name}")
    sys.stdout.flush()
    os.chdir(workspace.root)
    # Replace this process, so that Ctrl-C and signals reach JupyterLab, and its exit code is returned.
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", str(opened), *extra, *lab_args])


@click.command(cls=Command, title=TO_LEARN)
@click.argument("what", metavar="NOTEBOOK | EXERCISE")
@click.option("--only", default="", help="Only this exercise (name or number).")
@as_json_option
def check(what: str, only: str, as_json: bool) -> None:
    """Check every exercise of one notebook, or one exercise.

    A number, a name or a path: course check 02, course check 2.1, course check ping_pong, or
    course check work/02_blocking_p2p.ipynb. The checks are those of the notebook itself. Exits with 0 if
    all pass.
    """
    from helpers.answers.reader import UnreadableNotebook, read_answers
    from helpers.course.targets import UnknownTarget, find_answers_file
    from helpers.views.plain import for_log

    workspace = workspaces.find_workspace()
    try:  # loading torch takes seconds, so report a file that is not a notebook first
        notebook, only = find_answers_file(workspace, what, only)
        read_answers(notebook, [])
    except (UnreadableNotebook, UnknownTarget) as error:
        if as_json:
            raise CommandError(for_log(str(error))) from error
        click.echo(for_log(str(error)))
        sys.exit(2)

    from helpers.ranks.shared_torch import share_torch

    share_torch(())
    from helpers.checks.check_notebook import check_data, check_notebook, grade_and_disconnect

    try:
        if as_json:
            from helpers.course.as_json import only_json, write

            with only_json() as stream:
                results = grade_and_disconnect(notebook, only)
            write(check_data(results), stream)
            sys.exit(not all(result.passed for result in results))
        sys.exit(check_notebook(notebook, only, is_own=workspace.owns(notebook)))
    except LookupError as error:  # no exercise has this name; the message lists similar ones
        raise click.ClickException(str(error.args[0])) from error


@click.command(cls=Command, title=TO_LEARN)
def watch() -> None:
    """Check your notebooks each time you save one.

    Run it in a terminal next to JupyterLab. It checks the exercises that you changed, prints the verdicts,
    and says which exercise comes next. Ctrl-C ends it.
    """
    from helpers.course.saves import Saves

    saves = Saves.since_start(workspaces.find_workspace().work)
    click.echo(
        f"Watching {saves.folder}: each time you save a notebook, the exercises that you changed are "
        "checked. Ctrl-C stops it."
    )
    sys.stdout.flush()
    from helpers.ranks.shared_torch import share_torch

    try:  # importing torch takes seconds
        share_torch(())
        from helpers.course.watch_command import watch as watch_saves
    except KeyboardInterrupt:
        click.echo()
        return
    watch_saves(saves)


@click.command(cls=Command, title=TO_LEARN)
@click.argument("what", metavar="EXERCISE | NOTEBOOK")
def hint(what: str) -> None:
    """Return the next hint for an exercise.

    A number, a name or a path: course hint 2.1, course hint ping_pong, or course hint 02 for the next
    exercise of a notebook.
    """
    from helpers.course.hints import hint as next_hint
    from helpers.course.show_message import to_plain
    from helpers.course.targets import find_open_exercise

    try:
        click.echo(to_plain(next_hint(find_open_exercise(what)).text))
    except LookupError as error:  # no exercise has this name; the message lists similar ones
        raise click.ClickException(str(error.args[0])) from error


@click.command(cls=Command, title=TO_LEARN)
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a page that shows what you can do now.",
)
@click.option(
    "--path",
    "chosen",
    type=click.Choice(path_names()),
    help="Choose the path to follow from now on.",
)
@as_json_option
def progress(html: Path | None, chosen: str | None, as_json: bool) -> None:
    """Show the map of the course: which notebooks are done, begun and next.

    Without a chosen path, the next step is on the path whose exercises you checked last.
    """
    if chosen is not None:
        from helpers.course.progress import record_path

        if note := record_path(chosen):
            raise CommandError(note)
    if html is not None:
        from helpers.course.can_do import write_can_do
        from helpers.course.progress import read_progress

        try:
            write_can_do(read_progress(), html)
        except OSError as error:
            raise CommandError(f"{html} cannot be written: {error.strerror}.") from error
        click.echo(f"Open {relative_path(html.absolute())} in a browser.")
        return
    if not as_json:
        from helpers.course.home import home

        click.echo(repr(home()))
        return
    from helpers.checks.headings import headings
    from helpers.course.as_json import progress_data, write
    from helpers.course.progress import read_progress

    write(progress_data(read_progress(), headings().values()))


@click.command(cls=Command, title=TO_LEARN)
@click.argument("notebook")
def reset(notebook: str) -> None:
    """Restore the original copy of one notebook.

    A number, a name or a path: course reset 02. Your own file is kept next to it.
    """
    fresh, kept = workspaces.reset(workspaces.find_workspace(), notebook)
    if kept:
        click.echo(f"Your file is now {relative_path(kept)}.")
    click.echo(
        f"{relative_path(fresh)} has its original state again. If it is open, reload it from disk."
    )


@click.command(cls=Command, title=TO_LEARN)
@as_json_option
def doctor(as_json: bool) -> None:
    """Test the course's requirements on this machine.

    Explains how to fix any problems. Exits with 1 if an essential requirement is missing.
    """
    from helpers.course.doctor import exit_code, format_finding, run_probes

    findings = []
    for finding in run_probes():
        findings.append(finding)
        if not as_json:
            click.echo(format_finding(finding))
    if as_json:
        from helpers.course.as_json import doctor_data, write

        write(doctor_data(findings))
    sys.exit(exit_code(findings))
