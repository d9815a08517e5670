"""The shared parts of `course`'s commands: classes, errors, an option, and paths.

Each feature defines its commands next to its code and declares them as entry points in pyproject.toml.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from helpers import plugins
from helpers.course import workspace as workspaces
from helpers.course.workspace import Workspace, docs_page

TO_LEARN, TO_TEACH, TO_WRITE = TITLES = ("To learn", "To teach", "To write")

_COMMANDS = "real_ranks.commands"
_MISSING = {"helpers.grading": "this copy is a learner's: it has no grader."}


class Command(click.Command):
    """A command of `course`. title: the section of the help text that lists it."""

    def __init__(self, *args: Any, title: str, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.title = title


class CommandWithCode(Command):
    """A command with meaningful exit codes. usage_code: the exit code for a wrong option or argument."""

    def __init__(self, *args: Any, usage_code: int, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.usage_code = usage_code

    def make_context(self, *args: Any, **settings: Any) -> click.Context:
        try:
            return super().make_context(*args, **settings)
        except click.UsageError as error:
            vars(error)["exit_code"] = self.usage_code
            raise


class CommandGroup(click.Group):
    """A command of `course` with subcommands. title: the section of the help text that lists it."""

    def __init__(self, *args: Any, title: str, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.title = title


class CommandError(click.ClickException):
    """A command could not do its work. Its exit code differs from the exit code for a wrong answer."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        """Print the line unchanged."""
        click.echo(self.format_message(), file=file, err=file is None)


class Interrupted(CommandError):
    """Ctrl-C, or SIGINT from a program. The exit code, as in shells, is 128 plus the signal's number."""

    exit_code = 130


as_json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print JSON; see docs/json.md." if docs_page("json.md") else "Print JSON.",
)


def find_command(name: str) -> click.Command | None:
    """Return a command by its name, or None if it does not exist. Raise an error if this copy lacks it."""
    try:
        command: click.Command = plugins.load(_COMMANDS, name)
        return command
    except KeyError:
        return None
    except plugins.MissingFeature as error:
        raise click.ClickException(_MISSING.get(error.package, f"{error}.")) from error


def command_names() -> list[str]:
    """Return the names of this copy's commands."""
    found = []
    for name in plugins.names(_COMMANDS):
        try:
            plugins.load(_COMMANDS, name)
            found.append(name)
        except plugins.MissingFeature:
            continue
    return found


def solved_notebooks(workspace: Workspace, names: Sequence[str]) -> list[Path]:
    """Return the paths of the named solved notebooks, or of all solved notebooks."""
    if names:
        return [workspaces.find_notebook(workspace.solutions, name) for name in names]
    return sorted(workspace.solutions.glob("*.ipynb"))


def relative_path(path: Path) -> str:
    """Return the path relative to the current folder if the path is inside the folder."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
