"""The commands of `course` for preparing a class."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from functools import partial
from pathlib import Path

import click

from helpers.course import workspace as workspaces
from helpers.course.command_parts import TO_TEACH, Command, relative_path, solved_notebooks
from helpers.course.paths import path_names
from helpers.views.plain import plural


@click.command(cls=Command, title=TO_TEACH)
@click.option("--path", type=click.Choice(path_names()), required=True, help="The path to divide.")
@click.option(
    "--hours",
    type=click.FloatRange(0.5, 24),
    default=8,
    help="Longest session in hours, including breaks.",
)
def sessions(path: str, hours: float) -> None:
    """Divide a path into sessions for a class.

    Lists the parts to explain, the start of each exercise, and breaks. For example, for evenings:
    course sessions --path ddp --hours 2
    """
    from helpers.course.paths import paths
    from helpers.teaching.lesson import read_lessons
    from helpers.teaching.program import divide_path, format_program

    known, chosen = read_lessons(workspaces.find_workspace()), paths()[path]
    try:
        program = divide_path(known, chosen, int(60 * hours))
    except ValueError as error:
        raise click.ClickException(f"{error} Increase --hours.") from error
    click.echo(format_program(chosen, program))


plan = copy(sessions)
"""The former name of `course sessions`. `helpers.plan` is about training runs."""
plan.name, plan.hidden = "plan", True


@click.command(cls=Command, title=TO_TEACH)
@click.argument("notebooks", nargs=-1)
@click.option(
    "--path",
    type=click.Choice(path_names()),
    help="Write one file, with a slide for each heading of a path.",
)
@click.option("--out", type=click.Path(path_type=Path), default=Path("slides"), help="A folder.")
@click.option(
    "--stored",
    is_flag=True,
    help="Use the stored (static) pictures instead of running the notebooks.",
)
@click.option("--further", is_flag=True, help="Include the optional exercises.")
@click.option("--solutions", is_flag=True, help="Include the solution after each exercise.")
def slides(
    notebooks: tuple[str, ...],
    path: str | None,
    out: Path,
    stored: bool,
    further: bool,
    solutions: bool,
) -> None:
    """Make slides of notebooks, or of a path.

    Each file has speaker notes (press S) and needs no network. Without arguments it makes a file for each
    notebook. For example: course slides 02 04, or: course slides --path ddp
    """
    workspace = workspaces.find_workspace()
    with _extra_slides():
        from helpers.course.paths import Stop, paths
        from helpers.teaching.lesson import solution_notebooks
        from helpers.teaching.slides import write_slides

        write = partial(write_slides, run=not stored, further=further, solutions=solutions)
        solution_notebooks(workspace)  # raise the error for a copy without solutions
        if path is not None:
            chosen = paths()[path]
            sources = [(workspace.solutions / f"{s.notebook}.ipynb", s) for s in chosen.stops]
            file = out / f"{path}.html"
            click.echo(relative_path(write(sources, file, learning_path=chosen)))
            return
        for source in solved_notebooks(workspace, notebooks):
            sources, file = [(source, Stop(source.stem))], out / f"{source.stem}.html"
            click.echo(relative_path(write(sources, file)))


@click.command(cls=Command, title=TO_TEACH)
@click.argument("out", type=click.Path(path_type=Path))
def teach(out: Path) -> None:
    """Write a teacher's page about each exercise.

    Each page has common wrong answers, hints and a solution. The pages are for teachers, not for learners.
    """
    with _extra_slides():
        from helpers.teaching.lesson import read_lessons
        from helpers.teaching.teacher_pages import write_teacher_pages

        pages = write_teacher_pages(read_lessons(workspaces.find_workspace()), out)
    click.echo(f"{plural(len(pages), 'page')}. Open {relative_path(pages[-1])}.")


@contextmanager
def _extra_slides() -> Iterator[None]:
    """Report a missing package needed only for slides and teachers' pages."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in (
            "latex2mathml",
            "sphinx_revealjs",
        ):
            raise
        raise click.ClickException(
            f"the package {error.name.partition('.')[0]} is missing. In the course's folder, run "
            "pip install -c constraints.txt -e '.[slides]'"
        ) from error
