"""The commands of `course` for authors of exercises and notebooks."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from helpers.course import workspace as workspaces
from helpers.course.command_parts import (
    TO_WRITE,
    Command,
    find_command,
    relative_path,
    solved_notebooks,
)


@click.command(cls=Command, title=TO_WRITE)
@click.argument("what", nargs=-1, required=True, metavar="EXERCISE | RESULTS...")
@click.option(
    "--add",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Add the wrong answer in FILE.",
)
@click.option("--show", metavar="TITLE", help="Print the whole program of this answer.")
@click.option(
    "--sentences",
    is_flag=True,
    help="List the task's requirements next to their tests; ALL: every task.",
)
@click.option("--only", metavar="EXERCISE", help="Only this exercise in RESULTS.")
@click.option("--group", type=int, help="With RESULTS and --only: show the program of this group.")
@click.option(
    "--say", default="", help="With --add or --group: the message to show for this mistake."
)
@click.option("--sandbox", default="auto", help="Sandbox for RESULTS; see `course grade`.")
def mistakes(
    what: tuple[str, ...],
    add: Path | None,
    show: str | None,
    sentences: bool,
    only: str | None,
    group: int | None,
    say: str,
    sandbox: str,
) -> None:
    """Check an exercise's known answers, or find a class's mistakes.

    With an exercise, reports whether each known mistake is rejected and its author sees its message, and
    whether the other answers in its file pass or fail as the file states. Exits with 1 if one does not.
    For example: course mistakes ping_pong --add both_send.py --say "Both ranks send first."

    With folders written by `course grade`, groups the wrong answers of these classes by their behavior.
    --only ping_pong --group 1 shows the program of a group. With --say, this program becomes one of your
    own known mistakes, and later learners who make it see your message.
    """
    if all(Path(name).is_dir() for name in what):
        command = find_command("class-mistakes")
        assert command is not None
        click.get_current_context().invoke(
            command, folders=what, only=only, group=group, say=say, sandbox=sandbox
        )
    if len(what) > 1 or only or group:
        raise click.UsageError("Pass one exercise, or folders written by `course grade`.")
    from helpers.checks.mistakes import answers_path, known_mistakes
    from helpers.checks.prove_answers import (
        CannotAdd,
        add_mistake,
        check_mistake,
        find_program,
        proof_table,
        table_of_other_answers,
    )
    from helpers.checks.registry import exercises, find_exercise
    from helpers.checks.task_sentences import list_sentences_and_tests

    if sentences and what[0] == "ALL":
        for exercise in exercises().values():
            click.echo(list_sentences_and_tests(exercise) + "\n")
        return
    try:
        found = find_exercise(what[0])
        if sentences:
            click.echo(list_sentences_and_tests(found))
            return
        if show is not None:
            click.echo(find_program(found, show), nl=False)
            return
        known = add_mistake(found, add, say) if add is not None else known_mistakes(found)
    except (LookupError, ValueError, CannotAdd) as error:
        raise click.ClickException(str(error.args[0])) from error
    proofs = []
    for mistake in known:
        if mistake.source:
            click.echo(f"  ... {mistake.title}", err=True)
            proofs.append(check_mistake(found, mistake))
    click.echo(proof_table(found, proofs))
    good = all(proof.is_good for proof in proofs)
    if add is not None:
        click.echo(f"Added to {answers_path(found)}." + " Fix the lines marked BAD." * (not good))
        sys.exit(not good)
    others, all_others = table_of_other_answers(found)
    click.echo(others)
    sys.exit(not (good and all_others))


@click.command(cls=Command, title=TO_WRITE)
def build() -> None:
    """Make the learner's notebooks/ from solutions/."""
    from helpers.course.build import build as build_notebooks

    workspace = workspaces.find_workspace()
    for path in build_notebooks(workspace.solutions, workspace.notebooks):
        click.echo(relative_path(path))


@click.command(cls=Command, title=TO_WRITE)
@click.argument("notebooks", nargs=-1)
def outputs(notebooks: tuple[str, ...]) -> None:
    """Run solved notebooks and store their outputs.

    All of them, or those named: course outputs 01 02.
    """
    from helpers.course.outputs import store_outputs

    for path in solved_notebooks(workspaces.find_workspace(), notebooks):
        click.echo(f"{relative_path(path)} ...")
        store_outputs(path)


@click.command(cls=Command, title=TO_WRITE)
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--notebooks", default="", help='Only these notebooks, such as "00 04" (default: all).'
)
@click.option(
    "--stored",
    is_flag=True,
    help="Use the stored (static) pictures instead of running the notebooks.",
)
@click.option("--address", default="", help="The URL at which the site will be published.")
def site(out: Path, notebooks: str, stored: bool, address: str) -> None:
    """Write the course as static pages.

    Runs the solved notebooks, and shows stubs in place of solutions. Players and explorers work without a
    server.
    """
    from helpers.course.site import build_site

    workspace = workspaces.find_workspace()
    named = notebooks.replace(",", " ").split()
    names = tuple(path.stem[:2] for path in solved_notebooks(workspace, named)) if named else ()

    def report(path: Path) -> None:
        click.echo(relative_path(path))
        sys.stdout.flush()

    build_site(workspace.solutions, out, names, run=not stored, address=address, on_page=report)
