"""Define the `course` command for learners, authors and the Makefile.

Each command passes its arguments to the module that does the work, and turns that module's errors into one
clear line. Modules that need torch are imported only by the commands that use them.
"""

from __future__ import annotations

import atexit
import errno
import gc
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from io import BytesIO, TextIOWrapper
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from helpers.course import workspace as workspaces
from helpers.course.notebook_file import NotebookError
from helpers.course.paths import path_names as path_names
from helpers.course.workspace import Workspace, WorkspaceError, docs_page
from helpers.views.plain import PLAIN_MARKS, plural

_COMMAND_GROUPS = {
    "To learn": ("lab", "check", "watch", "hint", "progress", "reset", "doctor"),
    "To teach": ("plan", "slides", "teach", "room", "grade", "release", "gradescope"),
    "To write": ("mistakes", "build", "outputs", "site"),
}
"""The commands in the order of the help text. One that is missing here comes last."""


_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}


class _CommandError(click.ClickException):
    """A command could not do its work. The exit code differs from that of a wrong answer."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        """Print the line as it is."""
        click.echo(self.format_message(), file=file, err=file is None)


class _Interrupted(_CommandError):
    """Ctrl-C, or SIGINT from a program. The exit code is that of shells: 128 and the signal's number."""

    exit_code = 130


class _Course(click.Group):
    """Shows the course's own errors as messages, not as tracebacks, and groups commands by who needs them."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        named = {name for names in _COMMAND_GROUPS.values() for name in names}
        others = tuple(name for name in self.list_commands(ctx) if name not in named)
        for title, names in {**_COMMAND_GROUPS, "Others": others}.items():
            rows = [(name, self.commands[name].get_short_help_str(70)) for name in names]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> object:
        wants_json = "--json" in [*getattr(ctx, "_protected_args", ()), *ctx.args]
        try:
            return self._invoke(ctx)
        except click.ClickException as error:
            if wants_json:  # other programs expect one object, however a command ends
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
                raise _CommandError(
                    f"{error.strerror}: {error.filename or 'the output'}."
                ) from error
            try:
                tempfile.gettempdir()
            except FileNotFoundError:
                raise _CommandError(
                    "No folder for temporary files can be written. Set TMPDIR to a writable folder."
                ) from error
            raise
        except ModuleNotFoundError as error:
            if error.name != "helpers.grading":
                raise
            raise click.ClickException("this copy is a learner's: it has no grader.") from error


def _pages_to_read() -> str | None:
    """Return where the documentation is. A learner's bundle has only a part of it."""
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
        ):  # in ASCII and Latin-1, marks such as a tick are replaced
            stream.reconfigure(errors=PLAIN_MARKS)
    # Importing torch creates a million objects that stay. Collecting garbage among them during the import
    # and at exit takes a third of a short command's time.
    gc.set_threshold(100_000, 50, 50)
    atexit.register(gc.freeze)


@main.command(context_settings={"ignore_unknown_options": True})
@click.argument("lab_args", nargs=-1, type=click.UNPROCESSED)
def lab(lab_args: tuple[str, ...]) -> None:
    """Open the course in JupyterLab.

    First copies the notebooks that you do not have yet into your folder: work/, or ~/real-ranks
    where this copy of the course is not yours, or REAL_RANKS_WORK. Nothing is overwritten.
    Further arguments are passed to JupyterLab, and `jupyter lab --help` lists them:
    course lab --no-browser --port 8899
    """
    workspace = workspaces.find_workspace()
    extra = []
    if os.geteuid() == 0 and "--allow-root" not in lab_args:
        # A container's only user is often root, as which JupyterLab refuses to run unless allowed. Its page
        # asks for a token and listens on this machine only, unless the arguments say otherwise.
        click.echo(
            "Running JupyterLab as root: anyone with its token can do anything on this machine."
        )
        extra.append("--allow-root")
    new = workspaces.copy_missing_notebooks(workspace)
    if new:
        click.echo(
            f"Copied into {_relative_path(workspace.work)}: {', '.join(path.name for path in new)}"
        )
    from helpers.course.home import write_home

    opened = write_home(workspace.work)
    if not opened.is_relative_to(workspace.root):
        click.echo(f"You work in {workspace.work}.")
    workspaces.set_up_jupyter()
    extra += workspaces.LOOK
    # Naming the file makes a browser that JupyterLab starts open it. With this, the printed URL leads
    # there, too.
    extra.append(f"--LabApp.default_url=/lab/tree/{opened.name}")
    sys.stdout.flush()
    os.chdir(workspace.root)
    # Replaces this process, so that Ctrl-C, signals and the exit code are JupyterLab's own.
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", str(opened), *extra, *lab_args])


@main.command()
@click.argument("notebook")
def reset(notebook: str) -> None:
    """Restore the original copy of one notebook.

    A number, a name or a path: course reset 02. Your own file is kept next to it.
    """
    fresh, kept = workspaces.reset(workspaces.find_workspace(), notebook)
    if kept:
        click.echo(f"Your file is now {_relative_path(kept)}.")
    click.echo(
        f"{_relative_path(fresh)} has its original state again. If it is open, reload it from disk."
    )


_as_json = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print JSON; see docs/json.md." if docs_page("json.md") else "Print JSON.",
)


@main.command()
@_as_json
def doctor(as_json: bool) -> None:
    """Test what the course needs on this machine.

    Says how to repair what does not work. Exits with 1 if something is missing that the course
    cannot do without.
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


@main.command()
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a page that shows what you can do now.",
)
@_as_json
def progress(html: Path | None, as_json: bool) -> None:
    """Show the map of the course: which notebooks are done, begun and next."""
    if html is not None:
        from helpers.course.can_do import write_can_do
        from helpers.course.progress import read_progress

        try:
            write_can_do(read_progress(), html)
        except OSError as error:
            raise _CommandError(f"{html} cannot be written: {error.strerror}.") from error
        click.echo(f"Open {_relative_path(html.absolute())} in a browser.")
        return
    if not as_json:
        from helpers.course.home import home

        click.echo(repr(home()))
        return
    from helpers.checks.headings import headings
    from helpers.course.as_json import progress_data, write
    from helpers.course.progress import read_progress

    write(progress_data(read_progress(), headings().values()))


@main.command()
@click.argument("what", metavar="EXERCISE | NOTEBOOK")
def hint(what: str) -> None:
    """Return the next hint for an exercise.

    A number, a name or a path: course hint 2.1, course hint ping_pong, or course hint 02 for the next
    exercise of a notebook.
    """
    from helpers.course.hints import hint as next_hint
    from helpers.course.targets import find_open_exercise

    try:
        click.echo(next_hint(find_open_exercise(what)))
    except LookupError as error:  # no exercise has this name; the message lists similar ones
        raise click.ClickException(str(error.args[0])) from error


@main.command()
@click.argument("what", metavar="NOTEBOOK | EXERCISE")
@click.option("--only", default="", help="Only this exercise (name or number).")
@_as_json
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
    try:  # torch takes seconds to load, so a file that is not a notebook is reported first
        notebook, only = find_answers_file(workspace, what, only)
        read_answers(notebook, [])
    except (UnreadableNotebook, UnknownTarget) as error:
        if as_json:
            raise _CommandError(for_log(str(error))) from error
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


@main.command()
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
        from helpers.course.watch import watch as watch_saves
    except KeyboardInterrupt:
        click.echo()
        return
    watch_saves(saves)


@main.group()
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

    Prints what learners run to join, and the address at which you see the class. Started again with the same
    file, the board has the same class, code and address.
    """
    with _room_server() as rooms:
        rooms.serve(file or _room_file(), **options)


@room.command()
@_ROOM_FILE
@click.argument("name", default="")
@click.option("--silent", is_flag=True, help="All learners who joined but sent nothing.")
def forget(file: Path | None, name: str, silent: bool) -> None:
    """Remove a learner and all that the board keeps of them.

    NAME is the name on the board. A board that is being served updates within a second.
    If made-up learners fill a room: course room new-code, then course room forget --silent
    """
    if silent == bool(name):
        raise click.UsageError("name a learner, or give --silent")
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
    before = work / "room.sqlite3"  # earlier versions kept it there
    if before.exists():
        return before
    (work / ".room").mkdir(parents=True, exist_ok=True)
    return work / ".room" / "board.sqlite3"


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="Folder for the results."
)
@click.option(
    "--sandbox",
    type=click.Choice(["auto", "bubblewrap", "landlock", "none"]),
    default="auto",
    help="The sandbox for answers; auto takes the strongest that works here.",
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
@_as_json
def grade(folder: Path, out: Path, as_json: bool, **options: Any) -> None:
    """Grade a folder of notebooks.

    One file for each learner, one folder for each, or an LMS's export. If it is killed, run the same
    command again: it continues. Exits with 1 if a hand-in could not be read or graded, or a learner
    is not on the roster; with 2 if nothing could be done.
    """
    from helpers.grading.command import grade_folder, result_as_data
    from helpers.grading.setting import CannotGrade, Setting
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
        raise _CommandError(for_log(f"Cannot grade: {error}")) from error
    except KeyboardInterrupt as error:
        raise _Interrupted(
            "Interrupted. Run the same command again to continue where it stopped."
        ) from error


@main.command()
@click.option("--path", type=click.Choice(path_names()), required=True, help="The path to divide.")
@click.option(
    "--hours",
    type=click.FloatRange(0.5, 24),
    default=8,
    help="Longest session in hours, including breaks.",
)
def plan(path: str, hours: float) -> None:
    """Divide a path into sessions for a class.

    Says what to explain, when each exercise begins, and when to have breaks. For example, in evenings:
    course plan --path ddp --hours 2
    """
    from helpers.course.paths import paths
    from helpers.teaching.lesson import read_lessons
    from helpers.teaching.program import format_program
    from helpers.teaching.program import plan_sessions as divided

    known, chosen = read_lessons(workspaces.find_workspace()), paths()[path]
    try:
        sessions = divided(known, chosen, int(60 * hours))
    except ValueError as error:
        raise click.ClickException(f"{error} Give more --hours.") from error
    click.echo(format_program(chosen, sessions))


@main.command()
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
        solution_notebooks(workspace)  # raises the error for a copy without solutions
        if path is not None:
            chosen = paths()[path]
            sources = [(workspace.solutions / f"{s.notebook}.ipynb", s) for s in chosen.stops]
            file = out / f"{path}.html"
            click.echo(_relative_path(write(sources, file, learning_path=chosen)))
            return
        for source in _solved_notebooks(workspace, notebooks):
            sources, file = [(source, Stop(source.stem))], out / f"{source.stem}.html"
            click.echo(_relative_path(write(sources, file)))


@main.command()
@click.argument("out", type=click.Path(path_type=Path))
def teach(out: Path) -> None:
    """Write a teacher's page about each exercise.

    A page for each, with the usual wrong answers, hints and a solution: for teachers, not for learners.
    """
    with _extra_slides():
        from helpers.teaching.lesson import read_lessons
        from helpers.teaching.teacher_pages import write_teacher_pages

        pages = write_teacher_pages(read_lessons(workspaces.find_workspace()), out)
    click.echo(f"{plural(len(pages), 'page')}. Open {_relative_path(pages[-1])}.")


@main.command()
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
    help="List the task's demands next to what tests them; ALL: every task.",
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

    With an exercise, says for each known mistake whether it is rejected and whether its author reads its own
    sentence, and for the other answers in its file whether they pass or fail as the file says. Exits with 1
    if one does not. For example: course mistakes ping_pong --add both_send.py --say "Both ranks send first."

    With folders that `course grade` wrote, groups the wrong answers of those classes by what they did.
    --only ping_pong --group 1 shows the program of a group; with --say it becomes a known mistake of your
    own, and the next learner who makes it reads the sentence.
    """
    if all(Path(name).is_dir() for name in what):
        from helpers.grading.class_mistakes import print_mistakes

        sys.exit(print_mistakes([Path(name) for name in what], only, group, say, sandbox))
    if len(what) > 1 or only or group:
        raise click.UsageError("Name one exercise, or folders that `course grade` wrote.")
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


@main.command()
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
        f"{len(files)} files in {_relative_path(out)}. Zip it, or put it where learners can get it."
    )
    if not without_mistakes:
        click.echo(describe_mistakes(workspaces.find_workspace()))


@main.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--secret", required=True, help="Secret for the hidden cases; keep it.")
@click.option(
    "--notebooks", default="", help='Notebooks that count, such as "04 05" (default: all).'
)
@click.option("--policy", type=click.Path(path_type=Path), help="A policy.toml with the weights.")
def gradescope(out: Path, secret: str, notebooks: str, policy: Path | None) -> None:
    """Write the zip that Gradescope takes as an autograder.

    For example: course gradescope autograder.zip --secret "something long" --notebooks "04 05"
    """
    from helpers.checks.headings import UnknownExercise, match_notebook
    from helpers.grading.reports.gradescope import write_zip
    from helpers.grading.setting import CannotGrade

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
    click.echo(f"{_relative_path(out)} contains the secret: upload it only to Gradescope.")


@main.command()
def build() -> None:
    """Make the learner's notebooks/ from solutions/."""
    from helpers.course.build import build as build_notebooks

    workspace = workspaces.find_workspace()
    for path in build_notebooks(workspace.solutions, workspace.notebooks):
        click.echo(_relative_path(path))


@main.command()
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
    names = tuple(path.stem[:2] for path in _solved_notebooks(workspace, named)) if named else ()

    def report(path: Path) -> None:
        click.echo(_relative_path(path))
        sys.stdout.flush()

    build_site(workspace.solutions, out, names, run=not stored, address=address, on_page=report)


@main.command()
@click.argument("notebooks", nargs=-1)
def outputs(notebooks: tuple[str, ...]) -> None:
    """Run solved notebooks and store their outputs.

    All of them, or those named: course outputs 01 02.
    """
    from helpers.course.outputs import store_outputs

    for path in _solved_notebooks(workspaces.find_workspace(), notebooks):
        click.echo(f"{_relative_path(path)} ...")
        store_outputs(path)


@contextmanager
def _extra_slides() -> Iterator[None]:
    """Report a missing package that only slides and teachers' pages need."""
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


def _solved_notebooks(workspace: Workspace, names: Sequence[str]) -> list[Path]:
    if names:
        return [workspaces.find_notebook(workspace.solutions, name) for name in names]
    return sorted(workspace.solutions.glob("*.ipynb"))


def _relative_path(path: Path) -> str:
    """Return the path relative to the current folder, if it is inside it."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


if __name__ == "__main__":
    main()
