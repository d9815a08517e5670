"""%%ranks: this cell is what every rank runs, in ranks that stay from cell to cell."""

from __future__ import annotations

import ast
import time
from typing import Any

from helpers.ranks.display import Display
from helpers.ranks.failures import LaunchError, Stopped
from helpers.ranks.follow import follow
from helpers.ranks.launcher import connect, make_run, make_setting, one_stop, taken_notes
from helpers.ranks.payload import check_world_size, names_payload
from helpers.ranks.run import Run
from helpers.ranks.world import World

USAGE = "%%ranks WORLD_SIZE [--send name,name] [--timeout SECONDS] [--fresh]"


_AFTER_A_FAILURE = (
    "These ranks have ended, with all that was defined on them. The next %%ranks cell starts new ones: "
    "run the cells that define what you need again."
)


class _Live:
    """The ranks that stay between the cells of this kernel, if there are any."""

    world: World | None = None
    ended_because: str = ""


def ranks(line: str, cell: str) -> Run:
    """Run the cell on every rank of a world that stays: `%%ranks 4 [--send f,x] [--timeout 30]`.

    `rank`, `world_size`, `torch` and `dist` are at hand. Names that a cell defines are there in the
    next `%%ranks` cell, on the ranks only: they are not the kernel's. `--send f,x` copies names of
    the kernel to every rank first. Another size, a failure or `--fresh` begins with new ranks. The
    cell's last expression is what each rank gives back.
    """
    world_size, names, timeout, fresh = _parse(line)
    from IPython import get_ipython

    shell = get_ipython()
    source = shell.transform_cell(cell)
    file = shell.compile.cache(source, shell.execution_count, cell)
    ast.parse(source, file)  # a mistake in the syntax is shown here, once, and not by every rank
    missing = [name for name in names if name not in shell.user_ns]
    if missing:
        raise LaunchError(f"--send {missing[0]}: the notebook has no variable of this name.")
    payload = names_payload({name: shell.user_ns[name] for name in names}) if names else b""
    return run_cell(world_size, source, file, payload, timeout, fresh)


def run_cell(
    world_size: int, source: str, file: str, payload: bytes, timeout: float, fresh: bool
) -> Run:
    """Run source on each rank of the live world, making it first where there is none of that size."""
    began = time.monotonic()
    display = Display()
    connection = connect()
    with connection.lock, one_stop():
        connection.wait_until_ready()
        try:
            world, notes = _live_world(world_size, fresh)
            head = {"do": "cell", "source": source, "file": file}
            world.give([head] * world_size, [(payload,)] * world_size)
            failure = follow(world, timeout, display)
            if failure is not None:
                end_live_world("a cell failed on them")
        except KeyboardInterrupt:
            end_live_world("you stopped it")
            display.clear()
            raise Stopped(world_size) from None
        except BaseException:
            end_live_world("of an error")
            raise
    run = make_run(world, failure, time.monotonic() - began, notes)
    if failure is not None:
        display.keep(run)
        failure.args = (f"{failure}\n{_AFTER_A_FAILURE}",)
        raise failure
    display.clear()
    return run


def _live_world(world_size: int, fresh: bool) -> tuple[World, tuple[str, ...]]:
    connection = connect()
    notes = list(taken_notes(connection))
    world = _Live.world
    if world is not None:
        world.pump(0.0)
        if world.connection is not connection or any(m.exitcode is not None for m in world.members):
            end_live_world("their processes had gone")
        elif fresh:
            end_live_world("you asked for fresh ones")
        elif world.setting.world_size != world_size:
            end_live_world(f"there were {world.setting.world_size} and you asked for {world_size}")
    if _Live.world is None:
        if _Live.ended_because:
            notes.append(
                f"new ranks, with nothing defined yet: the old ones ended because {_Live.ended_because}"
            )
        _Live.ended_because = ""
        _Live.world = World(connection, make_setting(world_size, "auto", True, True, None))
        _Live.world.start()
    assert _Live.world is not None
    return _Live.world, tuple(notes)


def end_live_world(because: str) -> None:
    """End the ranks that stay between cells; the next `%%ranks` says why it starts new ones."""
    if _Live.world is not None:
        _Live.ended_because = because
        _Live.world.end()
        _Live.world = None  # not before: a Stop in between must find it again


def _parse(line: str) -> tuple[int, list[str], float, bool]:
    words = line.split()
    names: list[str] = []
    timeout, fresh = 30.0, False
    try:
        world_size = int(words.pop(0)) if words and not words[0].startswith("-") else 2
        while words:
            word = words.pop(0)
            if word == "--send":
                names += [name for name in words.pop(0).split(",") if name]
            elif word == "--timeout":
                timeout = float(words.pop(0))
            elif word == "--fresh":
                fresh = True
            else:
                raise ValueError(word)
    except (ValueError, IndexError) as error:
        raise LaunchError(f"%%ranks {line}: cannot be read ({error}). Write {USAGE}.") from None
    return check_world_size(world_size), names, timeout, fresh


def register(shell: Any) -> None:
    """Make `%%ranks` known to an IPython shell."""
    shell.register_magic_function(ranks, magic_kind="cell", magic_name="ranks")
