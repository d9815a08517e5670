"""launch(): run a function on real ranks, watch them, and return the result.

fn, args --payload--> World.start --> World.send_task --> monitor_world --> Run
                                                          |    |
                                             DeadlockDetector  live view
in every case: World.end, which leaves no process, descriptor or file behind

`%%ranks` uses the same functions (`exclusive_server`, `execute`, `make_run`) with a world that keeps running.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from helpers.ranks.carried_settings import NO_SETTINGS, SentSettings, read_settings, unsent_note
from helpers.ranks.cells import in_kernel, learner_cells
from helpers.ranks.connection import Connection, ServerExited, Servers
from helpers.ranks.display import CheckDisplay, Display, NoDisplay
from helpers.ranks.failures import LaunchError, Stopped
from helpers.ranks.import_state import (
    ImportState,
    code_of,
    current_import_state,
    import_state,
    late_variables,
)
from helpers.ranks.launch_options import Caller, Options, Task, check_world_size
from helpers.ranks.monitor import monitor_world
from helpers.ranks.own_modules import notes_for_new_ranks
from helpers.ranks.payload import make_payload
from helpers.ranks.placement import LocalSite, Site
from helpers.ranks.preload_scan import find_imports
from helpers.ranks.rank_context import check_launch_allowed
from helpers.ranks.run import RankFailure, Run
from helpers.ranks.stop import raise_first_stop
from helpers.ranks.world import World
from helpers.trace.clocks import align_hosts
from helpers.trace.silent import silent_faults


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

    Each rank is a separate process that has joined the default process group.

    Args:
        fn: The function to run.
        world_size: Number of ranks to start.
        args: Arguments that are the same on every rank.
        per_rank: For each rank, a sequence of additional arguments.
        env: Environment variables, as one mapping for all ranks or one for each rank. They are set before the
            rank joins the group.
        timeout: The time that the whole launch may take, in seconds.
        backend: "gloo", "nccl", or "auto". If there are at least `world_size` GPUs, "auto" uses NCCL for
            tensors on GPUs and gloo for tensors on the CPU. Otherwise it uses gloo.
        init: If False, ranks do not join a group but find the environment that torchrun sets, so that
            `init_process_group("gloo")` works as in a script.
        on_failure: "raise"; "return" to return a Run with its `failure`; or "go on" to do the same, but let
            the other ranks continue after a rank fails or dies.
        trace: If False, no calls are recorded, so deadlocks are not explained. Use this to measure latencies
            of microseconds.

    Returns:
        The values, output and trace of all ranks. The notebook shortens long lines of output:
        `print(run.output[rank])` shows them whole.

    Raises:
        LaunchError: No rank could be started. If the function cannot be pickled, the error is a CannotSend.
        RankFailure: A rank did not succeed: RankFailed, RankDied, HostLost, Deadlock or RankTimeout. Its
            `.run` holds the values, output and trace up to the failure.
    """
    if on_failure not in {"raise", "return", "go on"}:
        raise LaunchError(f"on_failure must be 'raise', 'return' or 'go on'; got {on_failure!r}.")
    display = Display() if in_kernel() else NoDisplay()
    options = Options(
        world_size,
        env,
        timeout,
        backend,
        init,
        trace,
        record_values=display.records_values,
        keep_others_running=on_failure == "go on",
        own_temp=False,
    )
    with raise_as_stopped(world_size):
        settings = read_settings(*learner_cells())
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
        display.show_failed(run)
        raise run.failure
    display.show_at_end(run)
    return run


def run_on_ranks(
    fn: Callable[..., Any],
    options: Options,
    *,
    args: Sequence[Any] = (),
    per_rank: Sequence[Sequence[Any]] | None = None,
    settings: SentSettings = NO_SETTINGS,
    display: NoDisplay | None = None,
    caller: Caller | None = None,
    connection: Servers | None = None,
) -> Run:
    """Launch ranks like `launch`, for checks and graders, but always return the Run.

    Args:
        settings: The settings of this process, which are applied on the ranks.
        connection: The rank server to use; by default this process's server.
    """
    began = time.monotonic()
    size = check_world_size(options.world_size)
    if connection is None:
        check_launch_allowed()
    payload = make_payload(fn, size, args, per_rank, settings)
    options = options.resolve(connection.gpus(size) if connection is not None else None)
    display = display or _check_display.get() or NoDisplay()
    payloads = [(payload.shared, own) for own in payload.per_rank]
    state = import_state(code_of(fn), payload.shared, options.envs)
    modules = [] if state.in_ranks else find_imports(payload.shared, *payload.per_rank)
    for attempt in (1, 2):
        server = connection or connect_with_state(state)
        try:
            with exclusive_server(server, size, display):
                notes = pop_notes()
                server.request_imports(modules)
                world = World(server, options, caller or Caller())
                failure = execute(world, payload.task(), payloads, options.timeout, display)
                if connection is None or world.hosts:
                    # ranks in a sandbox must not choose a server's imports
                    preload_next_time(world, state)
        except LaunchError:
            if connection or attempt == 2 or not server.has_exited:
                raise
            continue  # the server was killed from outside while it started
        has_not_started = world.server_exited and not any(member.pid for member in world.members)
        if connection or not (has_not_started and attempt == 1):
            break
    notes = (
        *notes,
        *unsent_note(settings),
        *notes_for_new_ranks(),
        *_notes_on_late_variables(world, options, state),
    )
    return make_run(world, failure, time.monotonic() - began, notes)


def _notes_on_late_variables(world: World, options: Options, state: ImportState) -> tuple[str, ...]:
    names = late_variables(options.envs)
    if world.hosts:
        names = [n for n, _ in state.variables if any(n in env for env in options.envs)]
    return tuple(f"{name} has no effect: {_LATE_VARIABLE_NOTE}" for name in names)


def preload_next_time(world: World, state: ImportState) -> None:
    """Ask the server to import these ranks' modules, unless the program must import them itself."""
    if not state.in_ranks:
        with suppress(ServerExited):
            world.connection.request_imports(world.imported)


@contextmanager
def show_check(exercise: str) -> Iterator[None]:
    """While the block runs, show its launches' ranks in the notebook if the exercise's check is slow."""
    display = CheckDisplay(exercise)
    token = _check_display.set(display)
    try:
        yield
    finally:
        _check_display.reset(token)
        display.clear()


@contextmanager
def raise_as_stopped(world_size: int) -> Iterator[None]:
    """Raise Stopped after a Stop even before the ranks exist, for example while the server starts."""
    try:
        yield
    except Stopped:
        raise
    except KeyboardInterrupt:
        raise Stopped(world_size) from None


@contextmanager
def exclusive_server(connection: Servers, world_size: int, display: NoDisplay) -> Iterator[None]:
    """Lock the rank server and wait until it is ready. A Stop in the block is raised as Stopped."""
    with raise_first_stop(), connection.lock:
        connection.wait_until_ready()
        try:
            yield
        except KeyboardInterrupt:
            display.clear()  # Otherwise the live view would still show running ranks.
            raise Stopped(world_size) from None


def execute(
    world: World,
    task: Task,
    payloads: Sequence[Sequence[bytes]],
    timeout: float,
    display: NoDisplay,
    keep_alive: bool = False,
) -> RankFailure | None:
    """Send a world's ranks their task and watch them. If the ranks are not running, start them first.

    When this returns or raises, the world has ended. If `keep_alive` is True, the world keeps running after a
    success, and after a failure in which ranks lacked only a name.
    """
    succeeded = stays_alive = False
    try:
        try:
            if not world.members:
                world.start()
            world.send_task(task, payloads)
            failure = monitor_world(world, timeout, display)
            succeeded = failure is None
            stays_alive = keep_alive and (succeeded or world.has_only_name_errors())
            return failure
        finally:
            if not stays_alive:
                (world.release if succeeded else world.end)()
    except BaseException:
        if not world.ended:  # A Stop interrupted world.end(); no second Stop can follow.
            world.end()
        raise


def make_run(
    world: World, failure: RankFailure | None, seconds: float, notes: tuple[str, ...]
) -> Run:
    """Return the Run of a world that has ended, or whose ranks have all answered."""
    world.read_logs()
    if failure is None:
        trace = world.collector.trace()
        notes = (*notes, *silent_faults(trace, world.collector.unwaited_calls()))
    if left_out := world.collector.left_out:
        notes = (
            *notes,
            f"the trace has each rank's last calls; {left_out:,} earlier calls ended without an error",
        )
    run = Run(
        world.options.world_size,
        [member.value for member in world.members],
        [member.output for member in world.members],
        align_hosts(world.collector.trace(world.hosts)),
        failure,
        world.options.backend if world.options.init else "",
        seconds,
        notes,
        replaced=tuple(sorted({name for member in world.members for name in member.replaced})),
        thread_errors=tuple(
            f"a thread of rank {error.rank} raised {error}"
            for member in world.members
            for error in member.thread_errors
        ),
    )
    if failure is not None:
        failure.run = run
    return run


_LATE_VARIABLE_NOTE = (
    "torch reads it at import, before the ranks exist. On this machine, you can set it with env= "
    "if all ranks get the same value."
)
# Each server keeps another copy of torch in memory.
_MAX_OTHER_SERVERS = 2


@dataclass
class _OwnServer:
    """This process's rank server, if there is one, and a note for the next Run."""

    connection: Connection | None = None
    note: str = ""
    # The import state of this server.
    state: ImportState = ImportState(())
    # Servers for programs whose imports need a different state, newest last.
    other_servers: dict[ImportState, Connection] = field(default_factory=dict)
    # Returns the servers that replace this process's server inside a `with hosts(...)` block.
    active_hosts: Callable[[], Servers] | None = None


_own_server = _OwnServer()
_check_display: ContextVar[CheckDisplay | None] = ContextVar("check_display", default=None)


@contextmanager
def use_hosts(servers: Callable[[], Servers]) -> Iterator[None]:
    """Make `launch` and `%%ranks` use other servers in the block, instead of this process's server.

    servers: a function called for each launch. It may raise LaunchError.
    """
    previous, _own_server.active_hosts = _own_server.active_hosts, servers
    try:
        yield
    finally:
        _own_server.active_hosts = previous


@runtime_checkable
class HostsContext(Protocol):
    """Machines for `launch` and `%%ranks` inside a `with` block: see `helpers.hosts`."""

    def open(self) -> HostsContext: ...

    def servers(self) -> Servers: ...

    def __enter__(self) -> HostsContext: ...

    def __exit__(self, *error: object) -> None: ...


def active_hosts() -> Servers | None:
    """Return the servers of the active `with hosts(...)` block; None if there is none."""
    return _own_server.active_hosts() if _own_server.active_hosts is not None else None


def current_connection() -> Connection | None:
    """Return the connection to this process's rank server, if it has one."""
    return _own_server.connection


def connect(site: Site | None = None) -> Connection:
    """Return this process's rank server. Start one (at `site`) if there is none or it has exited."""
    connection = _running_or_none(_own_server.connection)
    if connection is None:
        _own_server.state = current_import_state()
        connection = _own_server.connection = Connection(site)
    return connection


def connect_with_state(state: ImportState) -> Connection:
    """Return a rank server whose imports of torch suit a program: usually the result of `connect`."""
    connection = _running_or_none(_own_server.connection)
    if state == (current_import_state() if connection is None else _own_server.state):
        return connect()
    server = _running_or_none(_own_server.other_servers.pop(state, None))
    if server is None:
        _close_other_servers(_MAX_OTHER_SERVERS - 1)
        server = Connection(LocalSite(dict(state.variables)))
    _own_server.other_servers[state] = server
    return server


def _close_other_servers(max_count: int) -> None:
    """Close the oldest of the other servers if there are more than `max_count`, except those in use."""
    for state, connection in list(_own_server.other_servers.items())[
        : max(0, len(_own_server.other_servers) - max_count)
    ]:
        if connection.lock.acquire(blocking=False):  # Otherwise another thread's launch uses it.
            try:
                _own_server.other_servers.pop(state).close()
            finally:
                connection.lock.release()


def _running_or_none(connection: Connection | None) -> Connection | None:
    """Return a rank server if it is running. Otherwise clean up its remains and return None."""
    if connection is None or not (connection.has_exited or not connection.alive()):
        return connection
    if connection.owner == os.getpid():
        if not connection.exited_when_idle():
            _own_server.note = "the rank server had been killed from outside; a new one was started"
        connection.close()
    return None


def disconnect() -> None:
    """End this process's rank servers, if any. The next launch starts a new server."""
    for connection in filter(None, (_own_server.connection, *_own_server.other_servers.values())):
        connection.close()
    _own_server.connection = None
    _own_server.other_servers.clear()


def start_in_background() -> None:
    """Start the rank server in a kernel, because a learner will soon need it. Do not wait for it."""
    try:
        check_launch_allowed()
    except LaunchError:
        return
    if in_kernel():
        connect()


def preload_for_cell(source: str) -> None:
    """Ask the rank server to import modules that a cell is likely to need soon, unless it is busy."""
    connection = _own_server.connection
    if connection is not None and connection.alive() and connection.lock.acquire(blocking=False):
        try:
            with suppress(ServerExited):
                connection.request_imports(find_imports(source.encode()))
        finally:
            connection.lock.release()


def add_note(text: str) -> None:
    """Add a note to be shown by the next Run."""
    _own_server.note = text


def pop_notes() -> tuple[str, ...]:
    """Return the notes for the next Run, and remove them."""
    notes, _own_server.note = (_own_server.note,) if _own_server.note else (), ""
    return notes
