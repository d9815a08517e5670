"""Run the `course` command: find the requested subcommand, and turn its errors into one clear line.

The commands are entry points declared by each feature (`helpers.plugins`, `command_parts`).
"""

from __future__ import annotations

import atexit
import errno
import gc
import sys
import tempfile
from io import TextIOWrapper

import click

from helpers.course.command_parts import TITLES, CommandError, command_names, find_command
from helpers.course.notebook_file import NotebookError
from helpers.course.workspace import WorkspaceError, docs_page
from helpers.views.plain import PLAIN_MARKS

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}


class _Course(click.Group):
    """Shows the course's errors as messages instead of tracebacks, and lists commands by their users."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return command_names()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return find_command(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        found = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        commands = [(name, each) for name, each in found.items() if each and not each.hidden]
        commands.sort(key=lambda named: _place(named[1]))
        for title in (*TITLES, "Others"):
            rows = [
                (name, command.get_short_help_str(70))
                for name, command in commands
                if getattr(command, "title", "Others") == title
            ]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> object:
        wants_json = "--json" in [*getattr(ctx, "_protected_args", ()), *ctx.args]
        try:
            return self._invoke(ctx)
        except click.ClickException as error:
            if wants_json:  # programs expect one object, even if a command fails
                from helpers.course.as_json import write

                write({"exit_code": error.exit_code, "error": error.format_message()})
            raise

    def _invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except (WorkspaceError, NotebookError) as error:
            raise click.ClickException(str(error)) from error
        except OSError as error:
            if error.errno in _NO_ROOM:
                raise CommandError(
                    f"{error.strerror}: {error.filename or 'the output'}."
                ) from error
            try:
                tempfile.gettempdir()
            except FileNotFoundError:
                raise CommandError(
                    "No folder for temporary files can be written. Set TMPDIR to a writable folder."
                ) from error
            raise


def _place(command: click.Command) -> tuple[str, int]:
    """Return the place of a command's definition, because the help text lists a file's commands in order."""
    code = getattr(command.callback, "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code else ("", 0)


def _pages_to_read() -> str | None:
    """Return the place of the documentation. A learner's bundle contains only a part of it."""
    pages = {
        "How ranks work": docs_page("engine.md"),
        "Teaching": docs_page("instructors.md"),
        "Grading": docs_page("grading.md"),
    }
    found = [f"{words}: {page}." for words, page in pages.items() if page]
    return " ".join(found) or None


@click.group(
    cls=_Course,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_pages_to_read(),
)
@click.version_option(package_name="real-ranks")
def main() -> None:
    """Real Ranks: a course in distributed PyTorch, whose notebooks start real ranks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(
            stream, TextIOWrapper
        ):  # in ASCII and Latin-1, marks such as a check mark are replaced
            stream.reconfigure(errors=PLAIN_MARKS)
    # Importing torch creates a million permanent objects. Collecting garbage among them during the import and
    # at exit takes a third of a short command's time.
    gc.set_threshold(100_000, 50, 50)
    atexit.register(gc.freeze)


if __name__ == "__main__":
    main()
