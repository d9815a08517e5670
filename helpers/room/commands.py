"""`course room`: serve the board of a class, and change its room."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from helpers.course import workspace as workspaces
from helpers.course.command_parts import TO_TEACH, CommandGroup
from helpers.views.plain import plural


@click.group(cls=CommandGroup, title=TO_TEACH)
def room() -> None:
    """Show live how far a class has come.

    A board on this machine, which learners join from their notebooks.
    """


_ROOM_FILE = click.option(
    "--file",
    type=click.Path(path_type=Path),
    help="The database (default: work/.room/board.sqlite3).",
)


@room.command()
@_ROOM_FILE
@click.option("--host", default="127.0.0.1", help="Address to listen on; 0.0.0.0 for all.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8765,
    help="Port to listen on; 0 picks a free one.",
)
@click.option("--address", default="", help="Public URL, if it differs from the listen address.")
@click.option("--stuck-after", default=10.0, help="Minutes until a learner counts as stuck.")
@click.option("--hub", is_flag=True, help="Run as a JupyterHub service (users join automatically).")
@click.option("--user", default="", help="Root becomes this user once the port is open.")
def serve(file: Path | None, **options: Any) -> None:
    """Serve the board until Ctrl-C.

    Prints the line that learners run to join, and your address for watching the class. If you start the
    board again with the same file, it has the same class, code and address.
    """
    with _room_server() as rooms:
        rooms.serve(file or _room_file(), **options)


@room.command()
@_ROOM_FILE
@click.argument("name", default="")
@click.option("--silent", is_flag=True, help="All learners who joined but sent nothing.")
def forget(file: Path | None, name: str, silent: bool) -> None:
    """Remove a learner and all data about them.

    NAME is the name on the board. A running board updates within a second.
    If fake learners fill a room, run: course room new-code, then course room forget --silent
    """
    if silent == bool(name):
        raise click.UsageError("pass the name of a learner, or --silent")
    with _room_server() as rooms:
        if silent:
            count = rooms.forget_silent(file or _room_file())
            click.echo(f"Removed from the room: {plural(count, 'learner')}.")
        else:
            rooms.forget_learner(file or _room_file(), name)
            click.echo(f"{name} is no longer in the room.")


@room.command("new-code")
@_ROOM_FILE
def new_code(file: Path | None) -> None:
    """Replace the code that learners use to join.

    The old code no longer works. Learners who have joined stay.
    """
    with _room_server() as rooms:
        code = rooms.replace_code(file or _room_file())
    click.echo(f"The code is now {code}.")


@contextmanager
def _room_server() -> Iterator[ModuleType]:
    """Yield the module that serves rooms; turn its errors into an error of the command."""
    try:
        from helpers.room import serve as rooms
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"{error.name} is not installed. In the course's folder: "
            f"{sys.executable} -m pip install -c constraints.txt -e '.[room]'"
        ) from error
    try:
        yield rooms
    except rooms.CannotServe as error:
        raise click.ClickException(str(error)) from error


def _room_file() -> Path:
    """Return the default path of a room's file, in a folder that JupyterLab's file browser hides."""
    work = workspaces.find_workspace().work
    before = work / "room.sqlite3"  # its place in earlier versions
    if before.exists():
        return before
    (work / ".room").mkdir(parents=True, exist_ok=True)
    return work / ".room" / "board.sqlite3"
