"""launch(): run a function on real ranks, watch them, and return what happened.

fn, args --payload--> World.start --> World.send_task --> follow --> Run
                                                          |    |
                                             DeadlockDetector  live view
in every case: World.end, which leaves no process, descriptor or file behind

`%%ranks` uses the same functions (`exclusive_server`, `execute`, `make_run`) with a world that lives on.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from helpers.ranks.cells import in_kernel, own_cells
from helpers.ranks.connection import Connection, ServerGone, Servers
from helpers.ranks.display import Display, Quiet
from helpers.ranks.failures import LaunchError, Stopped
from helpers.ranks.import_state import (
    ImportState,
    code_of,
    import_state,
    late_variables,
    state_here,
)
from helpers.ranks.monitor import follow
from helpers.ranks.options import Caller, Options, Task, check_world_size
from helpers.ranks.own_modules import notes_for_new_ranks
from helpers.ranks.payload import make_payload
from helpers.ranks.preload_scan import wanted_by
from helpers.ranks.rank_context import refuse_where_ranks_must_not_start
from helpers.ranks.run import RankFailure, Run
from helpers.ranks.settings import NONE, Carried, news, read_settings
from helpers.ranks.site import LocalSite, Site
from helpers.ranks.stop import one_stop
from helpers.ranks.world import World
from helpers.trace.clocks import aligned


def launch(
    fn: Callable[..., Any],
    world_size: int = 2,
    *,
    args: Sequence[Any] = (),
    per_rank: Sequence[Sequence[Any]] | None = None,
    env: Mapping[str, str] | Sequence[Mapping[str, str]] | None = None,
    timeout: float = 30.0,
    backend: str = "auto",
    init: bool = True,
    on_failure: str = "raise",
    trace: bool = True,
) -> Run:
    """Call `fn(rank, world_size, *args, *per_rank[rank])` on each of `world_size` real ranks.

    Each rank is a separate process, which has joined the default process group.

    Args:
        fn: The function to run.
        world_size: How many ranks to start.
        args: Arguments that are the same on every rank.
        per_rank: For each rank, a sequence with its own arguments.
        env: Environment variables, one mapping for all ranks or one for each. They are set before the
            group is joined.
        timeout: The time that the whole launch may take, in seconds.
        backend: "gloo", "nccl", or "auto". If there are at least `world_size` GPUs, "auto" uses NCCL for
            tensors on GPUs and gloo for those on the CPU. Otherwise it uses gloo.
        init: If False, ranks do not join a group but find the environment that torchrun sets, so that
            `init_process_group("gloo")` works as in a script.
        on_failure: "raise"; "return", which returns a Run with its `failure`; or "go on", which does the
            same but lets the other ranks continue after a rank fails or dies.
        trace: If False, no calls are recorded, so deadlocks are not explained. Use it to measure latencies
            of microseconds.

    Returns:
        The values, output and trace of all ranks. The notebook shortens long lines of output:
        `print(run.output[rank])` shows them whole.

    Raises:
        LaunchError: Nothing could be started. CannotSend is the case of a function that cannot be pickled.
        RankFailure: A rank did not succeed: RankFailed, RankDied, HostLost, Deadlock or RankTimeout. Its
            `.run` holds what was seen.
    """
    if on_failure not in {"raise", "return", "go on"}:
        raise LaunchError(f"on_failure must be 'raise', 'return' or 'go on'; got {on_failure!r}.")
    display = Display() if in_kernel() else Quiet()
    options = Options(
        world_size,
        env,
        timeout,
        backend,
        init,
        trace,
        watched=display.watched,
        others_go_on=on_failure == "go on",
        own_temp=False,
    )
    with stop_is_one_line(world_size):
        settings = read_settings(*own_cells())
        run = run_on_ranks(
            fn,
            options,
            args=args,
            per_rank=per_rank,
            settings=settings,
            display=display,
            connection=active_hosts(),
        )
    if run.failure is not None and on_failure == "raise":
        display.keep(run)
        raise run.failure
    display.remember(run)
    return run


def run_on_ranks(
    fn: Callable[..., Any],
    options: Options,
    *,
    args: Sequence[Any] = (),
    per_rank: Sequence[Sequence[Any]] | None = None,
    settings: Carried = NONE,
    display: Quiet | None = None,
    caller: Caller | None = None,
    connection: Servers | None = None,
) -> Run:
    """Do what `launch` does for checks and graders, but always return the Run.

    Args:
        settings: The settings of this process, which the ranks take over.
        connection: The rank server to use; by default this process's own.
    """
    began = time.monotonic()
    size = check_world_size(options.world_size)
    if connection is None:
        refuse_where_ranks_must_not_start()
    load = make_payload(fn, size, args, per_rank, settings)
    options = options.checked(connection.gpus(size) if connection is not None else None)
    display = display or Quiet()
    bodies = [(load.shared, own) for own in load.own]
    needs = import_state(code_of(fn), load.shared, options.envs)
    wanted = [] if needs.in_ranks else wanted_by(load.shared, *load.own)
    for attempt in (1, 2):
        server = connection or connect_for(needs)
        try:
            with exclusive_server(server, size, display):
                notes = taken_notes()
                server.want(wanted)
                world = World(server, options, caller or Caller())
                failure = execute(world, load.task(), bodies, options.timeout, display)
                if connection is None or world.hosts:
                    # ranks in a sandbox must not choose what a server imports
                    import_next_time(world, needs)
        except LaunchError:
            if connection or attempt == 2 or not server.gone:
                raise
            continue  # the server was killed from outside while it started
        never_began = world.server_gone and not any(member.pid for member in world.members)
        if connection or not (never_began and attempt == 1):
            break
    notes = (*notes, *news(settings), *notes_for_new_ranks(), *_late_notes(world, options, needs))
    return make_run(world, failure, time.monotonic() - began, notes)


def _late_notes(world: World, options: Options, needs: ImportState) -> tuple[str, ...]:
    late = late_variables(options.envs)
    if world.hosts:
        late = [n for n, _ in needs.variables if any(n in env for env in options.envs)]
    return tuple(f"{name} has no effect: {_LATE}" for name in late)


def import_next_time(world: World, needs: ImportState) -> None:
    """Ask the server to import what these ranks imported, unless their program must import by itself."""
    if not needs.in_ranks:
        with suppress(ServerGone):
            world.connection.want(world.imported)


@contextmanager
def stop_is_one_line(world_size: int) -> Iterator[None]:
    """Raise Stopped for a Stop even before the ranks exist, for example while the server starts."""
    try:
        yield
    except Stopped:
        raise
    except KeyboardInterrupt:
        raise Stopped(world_size) from None


@contextmanager
def exclusive_server(connection: Servers, world_size: int, display: Quiet) -> Iterator[None]:
    """Lock the rank server and wait until it is ready. A Stop in the block is raised as Stopped."""
    with one_stop(), connection.lock:
        connection.wait_until_ready()
        try:
            yield
        except KeyboardInterrupt:
            display.clear()  # Otherwise the live view would still show running ranks.
            raise Stopped(world_size) from None


def execute(
    world: World,
    task: Task,
    bodies: Sequence[Sequence[bytes]],
    timeout: float,
    display: Quiet,
    stays: bool = False,
) -> RankFailure | None:
    """Start a world's ranks if they are not running, send them their task, and watch them.

    When this returns or raises, the world has ended. If `stays` is True, the world lives on after a
    success, and after a failure in which ranks only lacked a name.
    """
    well = keeps = False
    try:
        try:
            if not world.members:
                world.start()
            world.send_task(task, bodies)
            failure = follow(world, timeout, display)
            well = failure is None
            keeps = stays and (well or world.only_lacks_names())
            return failure
        finally:
            if not keeps:
                (world.release if well else world.end)()
    except BaseException:
        if not world.ended:  # A Stop interrupted world.end(); a second Stop cannot come.
            world.end()
        raise


def make_run(
    world: World, failure: RankFailure | None, seconds: float, notes: tuple[str, ...]
) -> Run:
    """Make a Run from a world that has ended, or whose ranks have all answered."""
    world.read_logs()
    run = Run(
        world.options.world_size,
        [member.value for member in world.members],
        [member.output for member in world.members],
        aligned(world.collector.trace(world.hosts)),
        failure,
        world.options.backend if world.options.init else "",
        seconds,
        notes,
        replaced=tuple(sorted({name for member in world.members for name in member.replaced})),
    )
    if failure is not None:
        failure.run = run
    return run


_LATE = (
    "torch reads it at import, before the ranks exist. On this machine, env= may set it if all ranks "
    "get the same value."
)
# Each holds its own copy of torch in memory.
_MOST_OTHERS = 2


@dataclass
class _OwnServer:
    """This process's rank server, if there is one, and a note for the next Run."""

    connection: Connection | None = None
    note: str = ""
    # What its imports saw.
    state: ImportState = ImportState(())
    # Servers for programs whose imports must see something else, the newest last.
    others: dict[ImportState, Connection] = field(default_factory=dict)
    # Returns the servers that replace this process's own inside a `with hosts(...)` block.
    active_hosts: Callable[[], Servers] | None = None


_own = _OwnServer()


@contextmanager
def use_hosts(servers: Callable[[], Servers]) -> Iterator[None]:
    """Make `launch` and `%%ranks` use other servers than this process's own in the block.

    servers: called for each launch. It may raise LaunchError.
    """
    before, _own.active_hosts = _own.active_hosts, servers
    try:
        yield
    finally:
        _own.active_hosts = before


@runtime_checkable
class Place(Protocol):
    """Machines on which `launch` and `%%ranks` run inside a `with` block: see `helpers.hosts`."""

    def open(self) -> Place: ...

    def servers(self) -> Servers: ...

    def __enter__(self) -> Place: ...

    def __exit__(self, *error: object) -> None: ...


def active_hosts() -> Servers | None:
    """Return the servers of the active `with hosts(...)` block; None if there is none."""
    return _own.active_hosts() if _own.active_hosts is not None else None


def connected() -> Connection | None:
    """Return the connection to this process's rank server, if it has one."""
    return _own.connection


def connect(site: Site | None = None) -> Connection:
    """Return this process's rank server; start one (at `site`) if there is none or it has exited."""
    held = _still_there(_own.connection)
    if held is None:
        _own.state = state_here()
        held = _own.connection = Connection(site)
    return held


def connect_for(needs: ImportState) -> Connection:
    """Return a rank server whose imports of torch suit a program: usually the one of `connect`."""
    held = _still_there(_own.connection)
    if needs == (state_here() if held is None else _own.state):
        return connect()
    server = _still_there(_own.others.pop(needs, None))
    if server is None:
        _close_others(_MOST_OTHERS - 1)
        server = Connection(LocalSite(dict(needs.variables)))
    _own.others[needs] = server
    return server


def _close_others(most: int) -> None:
    """Close the oldest of the other servers if there are more than `most`, except those in use."""
    for needs, held in list(_own.others.items())[: max(0, len(_own.others) - most)]:
        if held.lock.acquire(blocking=False):  # Otherwise another thread's launch uses it.
            try:
                _own.others.pop(needs).close()
            finally:
                held.lock.release()


def _still_there(held: Connection | None) -> Connection | None:
    """Return a rank server if it runs. Otherwise clean up what is left of it and return None."""
    if held is None or not (held.gone or not held.alive()):
        return held
    if held.owner == os.getpid():
        if not held.has_retired():
            _own.note = "the rank server had been killed from outside; a new one was started"
        held.close()
    return None


def disconnect() -> None:
    """End this process's rank servers, if there are any. The next launch starts a new one."""
    for held in filter(None, (_own.connection, *_own.others.values())):
        held.close()
    _own.connection = None
    _own.others.clear()


def start_in_background() -> None:
    """Start the rank server in a kernel, where a learner will soon need it. Does not wait for it."""
    try:
        refuse_where_ranks_must_not_start()
    except LaunchError:
        return
    if in_kernel():
        connect()


def prepare_for(source: str) -> None:
    """Ask the rank server to import what a cell is likely to need soon, unless the server is busy."""
    held = _own.connection
    if held is not None and held.alive() and held.lock.acquire(blocking=False):
        try:
            with suppress(ServerGone):
                held.want(wanted_by(source.encode()))
        finally:
            held.lock.release()


def note_for_next_run(text: str) -> None:
    """Add a note that the next Run shows."""
    _own.note = text


def taken_notes() -> tuple[str, ...]:
    """Return the notes for the next Run, and remove them."""
    notes, _own.note = (_own.note,) if _own.note else (), ""
    return notes
