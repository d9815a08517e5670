"""%%ranks: run a cell on every rank of a world that keeps running from cell to cell."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from helpers.ranks.carried_settings import read_settings, unsent_note
from helpers.ranks.cells import (
    Source,
    cell_name,
    correct_cell_numbers,
    in_kernel,
    ipython,
    learner_cells,
)
from helpers.ranks.clean_settings import remember_kernel_start
from helpers.ranks.connection import Connection, Servers
from helpers.ranks.display import Display, track_cells
from helpers.ranks.failures import LaunchError, RankFailed
from helpers.ranks.import_state import import_state
from helpers.ranks.launch_options import Caller, Options, check_timeout, check_world_size
from helpers.ranks.launcher import (
    HostsContext,
    active_hosts,
    connect_with_state,
    exclusive_server,
    execute,
    make_run,
    pop_notes,
    preload_for_cell,
    preload_next_time,
    raise_as_stopped,
    start_in_background,
)
from helpers.ranks.missing_name import DefiningCell, advice_for_name, defining_cell
from helpers.ranks.own_modules import notes_for_live_ranks, notes_for_new_ranks, remember_imports
from helpers.ranks.payload import names_payload
from helpers.ranks.preload_scan import find_imports
from helpers.ranks.run import RankFailure, Run
from helpers.ranks.seeds import track_generators
from helpers.ranks.stop import count_stops, silence_stopped_threads
from helpers.ranks.world import World

USAGE = "%%ranks WORLD_SIZE [--send name,name] [--timeout SECONDS] [--fresh] [--no-trace] [--where hosts]"

_ENDED_ADVICE = (
    "These ranks were terminated, and everything defined on them is lost. The next %%ranks cell "
    "starts new ranks: first rerun the cells with the definitions that you need."
)


_ALIVE_ADVICE = "These ranks are still running, and keep what was defined on them."


@dataclass(frozen=True)
class _CellOptions:
    """The options of a `%%ranks` line.

    Attributes:
        names: The variables to send.
        fresh: Whether to start new ranks.
        trace: Whether to record the calls.
        where: The name of the hosts to run on. If it is "", the cell runs on the hosts of `with hosts(...)`,
            or else on this machine.
    """

    world_size: int = 2
    names: tuple[str, ...] = ()
    timeout: float = 30.0
    fresh: bool = False
    trace: bool = True
    where: str = ""

    def line_with_name(self, name: str) -> str:
        """Return the first line of this cell, with an additional name to send."""
        words = [f"%%ranks {self.world_size} --send {','.join((*self.names, name))}"]
        if self.timeout != _CellOptions.timeout:
            words.append(f"--timeout {self.timeout:g}")
        if not self.trace:
            words.append("--no-trace")
        if self.where:
            words.append(f"--where {self.where}")
        return " ".join(words)


_MAX_LOST_CELLS = 1000


@dataclass
class _LiveRanks:
    """The ranks that keep running between the cells of this kernel, if any.

    Attributes:
        module_times: For each of the learner's modules, the time of its last change before these ranks could
            first import it.
        cells: The cells that have run on these ranks, in order.
        lost_cells: The cells that ran on ranks that have ended, in order.
    """

    world: World | None = None
    end_reason: str = ""
    module_times: dict[str, int] = field(default_factory=dict)
    cells: list[DefiningCell] = field(default_factory=list)
    lost_cells: list[DefiningCell] = field(default_factory=list)


_live_ranks = _LiveRanks()


def ranks(line: str, cell: str) -> Run:
    """Run the cell on every rank of a world that keeps running: `%%ranks 4 [--send f,x] [--timeout 30]`.

    `rank`, `world_size`, `torch` and `dist` are predefined. Names that a cell defines exist in the next
    `%%ranks` cell, but only on the ranks, not in the kernel. `--send f,x` first copies names of the kernel to
    every rank. New ranks are started for a different world size, after a failure, and with `--fresh`.
    `--no-trace` also starts new ranks, which record no calls. Use it to measure latencies of microseconds;
    without a record, deadlocks are not explained. `--where machines` runs the cell on the hosts of `machines
    = hosts(...)`. Each rank returns the value of the cell's last expression.
    """
    options = _parse_line(line)
    with raise_as_stopped(options.world_size):
        return _run_magic(options, cell)


def _run_magic(options: _CellOptions, cell: str) -> Run:
    shell = ipython()
    # Count lines as the editor does, which includes the line of the magic itself.
    source = "\n" * _lines_above(shell, cell) + shell.transform_cell(cell)
    file = shell.compile.cache(source, shell.execution_count, cell)
    # Show a syntax error once, from here, instead of from every rank.
    try:
        code = compile(source, file, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except SyntaxError as error:
        raise _syntax_error(error, cell_name(file), source) from None
    if code.co_flags & inspect.CO_COROUTINE:
        raise LaunchError(
            "ranks cannot `await` at the top level of a cell: only a notebook's kernel has a running "
            "event loop. Put the lines into an async function, and call asyncio.run(main())."
        )
    if magic := _find_magic(source):
        raise LaunchError(
            f"`{magic}` is an IPython command, and ranks do not run IPython. Put it into a cell "
            "without %%ranks, or call subprocess.run in this one."
        )
    missing = [name for name in options.names if name not in shell.user_ns]
    if missing:
        raise LaunchError(f"--send {missing[0]}: the notebook has no variable with this name.")
    names = {name: shell.user_ns[name] for name in options.names}
    hosts = shell.user_ns.get(options.where)
    if not options.where:
        return run_cell(options, source, file, names)
    if not isinstance(hosts, HostsContext):
        name = options.where if options.where.isidentifier() else "machines"
        option = "" if name == options.where else f", and --where {name}"
        raise LaunchError(
            f"--where {options.where}: the notebook has no hosts with this name. "
            f'Write {name} = hosts("tcp://SCHEDULER:8786") in a cell before{option}.'
        )
    hosts.open()  # The hosts stay open, because their ranks keep running.
    with hosts:
        return run_cell(options, source, file, names)


def _lines_above(shell: Any, cell: str) -> int:
    """Return the number of lines above the first non-empty line of the cell's body, as typed."""
    typed = getattr(shell.history_manager, "input_hist_raw", ("",))[-1].rstrip()
    body = cell.strip()  # IPython omits empty lines at the beginning.
    return typed[: len(typed) - len(body)].count("\n") if body and typed.endswith(body) else 0


def _syntax_error(error: SyntaxError, cell: str, source: str) -> LaunchError:
    """Return an error that locates a syntax error.

    IPython's error would show the lines of the engine that compiled the cell.
    """
    if error.msg == "'return' outside function":
        return LaunchError(
            f"`return` (line {error.lineno}) is outside a function. A %%ranks cell returns its last "
            "expression: write the value alone on the last line."
        )
    line = source.splitlines()[
        (error.lineno or 1) - 1 : error.lineno or 1
    ]  # Some syntax errors carry no text.
    code, indent = (error.text or "".join(line)).rstrip("\n"), " " * (max(error.offset or 1, 1) - 1)
    return LaunchError(
        f"this cell is not valid Python, so no rank ran it: {type(error).__name__}: {error.msg}\n"
        f"  {cell}, line {error.lineno}\n    {code}\n    {indent}^"
    )


# IPython's methods, each with the first characters of the lines that IPython translates into its calls.
_IPYTHON_METHODS = {"system": "!", "getoutput": "!", "run_line_magic": "%", "run_cell_magic": "%%"}


def _find_magic(source: str) -> str:
    """Return the first line, as typed, of a cell that only IPython can run; "" if there is none."""
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in _IPYTHON_METHODS
            and isinstance(node.func.value, ast.Call)
            and ast.unparse(node.func.value) == "get_ipython()"
        ):
            words = [
                str(argument.value) for argument in node.args if isinstance(argument, ast.Constant)
            ]
            return _IPYTHON_METHODS[node.func.attr] + " ".join(words)
    return ""


def run_cell(cell_options: _CellOptions, source: str, file: str, names: Mapping[str, Any]) -> Run:
    """Run `source` on each rank of the live world, or of a new world if the live world is unsuitable."""
    began = time.monotonic()
    size = cell_options.world_size
    payload = names_payload(names)
    code = compile(source, file, "exec", dont_inherit=True)
    state = import_state(code, source.encode() + payload.shared)
    display = Display()
    connection = active_hosts() or _server_of_live_world(cell_options) or connect_with_state(state)
    with exclusive_server(connection, size, display):
        try:
            if not state.in_ranks:
                connection.request_imports(find_imports(source.encode(), payload.shared))
            world, notes = _live_world(connection, cell_options)
            if not world.members:  # Live ranks keep their settings, including later changes.
                settings = read_settings(*learner_cells())
                payload = names_payload(names, settings)
                notes = (*notes, *unsent_note(settings), *notes_for_new_ranks())
            notes = (*notes, *notes_for_live_ranks(_live_ranks.module_times))
            payload.sources[file] = Source(cell_name(file), source)
            _live_ranks.cells.append(defining_cell(cell_name(file), code))
            task, payloads = payload.task(source, file), [(payload.shared,)] * size
            failure = execute(world, task, payloads, cell_options.timeout, display, keep_alive=True)
            preload_next_time(world, state)
        except BaseException as error:
            was_stopped = isinstance(error, KeyboardInterrupt)
            end_live_world("you stopped the cell" if was_stopped else "a cell raised an error")
            raise
        if world.ended:
            end_live_world("a cell failed on them")
    run = make_run(world, failure, time.monotonic() - began, notes)
    if failure is not None:
        display.show_failed(run)
        advice = (
            _advice_for_name(cell_options, failure),
            _ENDED_ADVICE if world.ended else _ALIVE_ADVICE,
        )
        failure.args = ("\n".join(filter(None, (str(failure), *advice))),)
        raise failure
    display.clear()
    return run


def _advice_for_name(options: _CellOptions, failure: RankFailure) -> str:
    name = failure.error.missing if isinstance(failure, RankFailed) else ""
    _, kernel = learner_cells()
    return (
        advice_for_name(name, kernel, _live_ranks.lost_cells, options.line_with_name(name))
        if name
        else ""
    )


def _server_of_live_world(options: _CellOptions) -> Connection | None:
    """Return the live world's local rank server if its ranks can run this cell; otherwise None."""
    world = _live_ranks.world
    if world is None or not isinstance(world.connection, Connection):
        return None
    is_usable = world.connection.alive() and not _reason_for_new_ranks(
        world, world.connection, options
    )
    return world.connection if is_usable else None


def _live_world(connection: Servers, cell_options: _CellOptions) -> tuple[World, tuple[str, ...]]:
    """Return the live world, or a new world that has not started, and notes for the reader."""
    notes = list(pop_notes())
    if _live_ranks.world is not None and (
        reason := _reason_for_new_ranks(_live_ranks.world, connection, cell_options)
    ):
        end_live_world(reason)
    if _live_ranks.world is None:
        if _live_ranks.end_reason:
            notes.append(
                "these are new ranks with nothing defined on them; the old ranks ended "
                f"because {_live_ranks.end_reason}"
            )
        _live_ranks.end_reason = ""
        records_values = Display().records_values
        gpus = connection.gpus(cell_options.world_size)
        options = Options(
            cell_options.world_size,
            trace=cell_options.trace,
            record_values=records_values,
            own_temp=False,
        )
        _live_ranks.world = World(connection, options.resolve(gpus), Caller())
    return _live_ranks.world, tuple(notes)


def _reason_for_new_ranks(world: World, connection: Servers, options: _CellOptions) -> str:
    """Return the reason why the live ranks cannot run a cell; "" if they can."""
    if world.connection is not connection:
        if lost := world.connection.lost_hosts:
            return (
                f"the host{'s' * (len(lost) > 1)} {' and '.join(lost)} "
                f"{'was' if len(lost) == 1 else 'were'} lost"
            )
        if bool(world.hosts) != bool(connection.host_names(options.world_size)):
            return "they were on different machines"
        if not isinstance(world.connection, Connection) or world.connection.closed:
            return "their processes exited"
    world.poll(0.0)
    size, is_recorded = world.options.world_size, world.options.trace
    if any(member.exitcode is not None for member in world.members):
        return "their processes exited"
    if options.fresh:
        return "you asked for fresh ranks"
    if size != options.world_size:
        return f"you asked for {options.world_size} instead of {size}"
    if is_recorded != options.trace:
        verb, negation = ("", " not") if is_recorded else (" not", "")
        return f"their calls were{verb} recorded, and you asked for ranks whose calls are{negation}"
    return ""


def end_live_world(reason: str) -> None:
    """End the live ranks. The next `%%ranks` shows `reason` as the reason for new ranks."""
    if _live_ranks.world is not None:
        _live_ranks.end_reason = reason
        lost = [*_live_ranks.lost_cells, *_live_ranks.cells]
        _live_ranks.lost_cells, _live_ranks.cells = lost[-_MAX_LOST_CELLS:], []
        if not _live_ranks.world.ended:
            _live_ranks.world.end()
        _live_ranks.module_times = {}
        _live_ranks.world = None  # do this last, so that an earlier Stop still finds the world


def _parse_line(line: str) -> _CellOptions:
    # Also accept other common ways to write options: `--timeout=5`, `--send f, x`, a comment at the end.
    words = re.sub(r"\s*,\s*", ",", line.partition("#")[0]).replace("=", " ").split()
    options: dict[str, Any] = {}
    try:
        if words and not words[0].startswith("-"):
            options["world_size"] = int(words.pop(0))
        while words:
            word = words.pop(0)
            if word == "--send":
                names = [name for name in words.pop(0).split(",") if name]
                options["names"] = (*options.get("names", ()), *names)
            elif word == "--timeout":
                options["timeout"] = check_timeout(float(words.pop(0)))
            elif word == "--fresh":
                options["fresh"] = True
            elif word == "--no-trace":
                options["trace"] = False
            elif word == "--where":
                options["where"] = words.pop(0)
            else:
                raise ValueError(word)
    except (ValueError, IndexError) as error:
        raise LaunchError(
            f"%%ranks {line}: this line cannot be read ({error}). Write {USAGE}."
        ) from None
    check_world_size(options.get("world_size", 2))
    return _CellOptions(**options)


def register(shell: Any) -> None:
    """Register `%%ranks` with an IPython shell, and prepare the rank server before each cell."""
    shell.register_magic_function(ranks, magic_kind="cell", magic_name="ranks")
    # IPython calls this magic if there is anything above `%%ranks` in a cell, even a comment.
    shell.register_magic_function(_reject_second_line, magic_kind="line", magic_name="%ranks")
    if in_kernel():
        # Follow the generator's state before a cell can seed it.
        importlib.import_module("numpy.random")
        track_generators()
        remember_imports()
        remember_kernel_start()
        track_cells(shell)
        silence_stopped_threads()
        shell.events.register("pre_run_cell", _before_cell)
        shell.events.register("post_run_cell", _after_cell)
        # IPython has already announced the cell that imports this module, so `_before_cell` does not see that
        # cell.
        preload_for_cell(str(shell.history_manager.input_hist_raw[-1]))


def _reject_second_line(line: str) -> None:
    raise LaunchError(
        f"`%%ranks {line}`".rstrip()
        + " must be the first line of its cell. Move everything above it, including comments, below it."
    )


def _after_cell(result: Any) -> None:
    # The error contains only the exit codes. The reason is in the processes' output.
    error = type(result.error_in_exec)
    if (error.__module__, error.__name__) == (
        "torch.multiprocessing.spawn",
        "ProcessExitedException",
    ):
        print(
            "mp.spawn starts new processes, which do not have the functions of a notebook. If that is "
            "why they exited, use launch(f, 2, init=False), which runs f as mp.spawn(f, args=(2,), "
            "nprocs=2) would.",
            file=sys.stderr,
        )


def _before_cell(info: Any) -> None:
    count_stops(ipython().kernel)
    if info.store_history:  # Otherwise a magic of another cell runs this cell.
        correct_cell_numbers(ipython())
    start_in_background()  # The server may have exited while it was idle.
    preload_for_cell(str(info.raw_cell))
    track_generators()
