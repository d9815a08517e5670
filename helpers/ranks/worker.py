"""The code inside one rank: join the group, call the function, send the result.

The server calls `main` in a freshly forked process. If fork is unsafe, it starts this module as a program. In
both cases the rank receives two private descriptors: the channel to its launcher, which also identifies the
rank, and the pipe for its output.
"""

from __future__ import annotations

import _thread
import contextlib
import faulthandler
import fcntl
import functools
import io
import linecache
import multiprocessing.process
import os
import pickle
import queue
import signal
import socket
import sys
import threading
import time
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from msgspec import json

from helpers.ranks import stores, torch_fixes, wire
from helpers.ranks.carried_settings import apply_settings
from helpers.ranks.cells import Source
from helpers.ranks.launch_options import Identity, Options, Task, has_gpu_driver
from helpers.ranks.new_process import (
    catch_clean_exit,
    drop_server_finalizers,
    end_forked_child,
    export_main_on_spawn,
    join_threads,
    reset_main,
    run_exit_handlers,
    seed_from_system,
    set_temp_folder,
)
from helpers.ranks.rank_context import become_rank
from helpers.ranks.status import report_child_call, status
from helpers.ranks.thread_errors import (
    add_thread_error,
    remember_thread_errors,
    take_thread_errors,
)
from helpers.ranks.tracebacks import describe_error

# The only descriptors that a rank has besides 0, 1 and 2.
CHANNEL_FD, LOG_FD = 3, 4
# Set in every rank's environment, to refuse launches from there.
INSIDE_RANK_VARIABLE = "REAL_RANKS_INSIDE"

# If a task imports at least this number of new modules, it is slow, so the server should import them once for
# all ranks.
_SLOW_IMPORT_MODULES = 50
# Timeout of a rank waiting for a reply; the launcher's deadlines are shorter.
_REPLY_TIMEOUT_S = 60.0
# Time to wait for the report that is being made when a task ends.
_STATUS_TIMEOUT_S = 2.0
# Timeout of ranks on several hosts waiting for each other; the launch's budget ends sooner.
_RENDEZVOUS_TIMEOUT = timedelta(minutes=5)


def main(sock: socket.socket) -> None:
    """Serve one launcher over `sock` until it closes. Never returns."""
    try:
        rank = _Rank(sock)
        rank.serve()
    except (EOFError, ConnectionError):
        pass
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(0)  # Skip Python's teardown, because gloo's threads must not outlive its state.


class _Rank:
    """One rank: its channel, its recorder, and its namespace.

    The main thread runs the tasks. A second thread listens to the launcher: it passes tasks on, and reports
    the main thread's position, even while the main thread is deep inside torch.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.channel = _Channel(sock)
        self.recorder: Any = None
        self.log: Any = None
        self.tasks: queue.SimpleQueue[bytearray] = queue.SimpleQueue()
        self.replies: queue.SimpleQueue[bytearray] = queue.SimpleQueue()
        self.ask_lock = threading.Lock()
        self.status_lock = threading.Lock()
        self.namespace: dict[str, Any] = reset_main()
        self.most_result = wire.MAX_BYTES[wire.RESULT]
        # Namespaces of functions that `--send` has sent to cells
        self.sent_namespaces: list[dict[str, Any]] = []
        self.module_count = 0  # number of imported modules at the beginning of the task
        # Set in a process that the learner's code forks: it has the rank's memory, but is not the rank.
        self.is_forked_child = False

    def serve(self) -> None:
        # Do not use `threading`, whose list of threads must contain only the learner's threads.
        _thread.start_new_thread(self._receive_frames, ())
        while True:
            self.run(*_split_task(self.tasks.get()))

    def run(self, task: Task, payload: memoryview) -> None:
        """Run one task and answer with RESULT or ERROR."""
        # Look these functions up before the task runs, because it may replace their names.
        encode, send = wire.encode, self.channel.send
        try:
            if task.identity is not None:
                self._set_up(task.identity, is_cell=task.source is not None)
            elif task.rewind_logs and self.log is not None:
                self.log.rewind()
            self.module_count = len(sys.modules)
            value = self._run_task(task, payload)
            if self.is_forked_child:
                end_forked_child(None)
            self._wait_for_status()
            if self.recorder is not None:
                self.recorder.finish_task()
            chunks = encode(value, self.most_result)
            if task.source is None:
                run_exit_handlers()
            _flush_output()
            self._report_imports()
            for thread_error in take_thread_errors():
                send(wire.THREAD_ERROR, json.encode(thread_error))
            send(wire.RESULT, *chunks)
        except BaseException as error:  # Includes the learner's SystemExit and KeyboardInterrupt.
            if self.is_forked_child:
                end_forked_child(error)
            with contextlib.suppress(Exception):
                _flush_output()
                self._report_imports()
            report = add_thread_error(describe_error(error), take_thread_errors())
            send(wire.ERROR, json.encode(report))

    def _run_task(self, task: Task, payload: memoryview) -> Any:
        for file, cell in task.cells.items():
            _register_cell(file, cell)
        with catch_clean_exit():
            if task.source is not None:
                names, _ = _read_payload(task, payload)
                self._store_sent_names(names or {})
                return _sendable_or_none(run_cell(task.source, task.file, self.namespace))
            (fn, args), rank_args = _read_payload(task, payload)
            value = fn(self.rank, self.world_size, *args, *rank_args)
            join_threads()
            return value
        return None

    def _store_sent_names(self, names: dict[str, Any]) -> None:
        """Add the sent names to the cells' names, and update them in functions sent earlier.

        Those functions have a separate namespace, so that sending them does not replace names of cells.
        """
        self.namespace.update(names)
        for namespace in self.sent_namespaces:
            namespace.update({name: value for name, value in names.items() if name in namespace})
        functions = [
            function
            for value in names.values()
            for function in (value, *getattr(value, "__dict__", {}).values())
        ]
        self.sent_namespaces += [
            function.__globals__
            for function in functions
            if isinstance(function, types.FunctionType)
        ]

    def _set_up(self, identity: Identity, is_cell: bool) -> None:
        """Become this rank: set the environment, folders, random state, and process group."""
        remember_thread_errors()
        self.rank, self.world_size = identity.rank, identity.options.world_size
        self.most_result = identity.most_result
        for name in identity.unset:
            os.environ.pop(name, None)
        os.environ.update(identity.env)
        os.environ[INSIDE_RANK_VARIABLE] = "1"
        time.tzset()  # TZ may differ from the server's.
        set_temp_folder(identity.temp)
        with contextlib.suppress(OSError):
            os.chdir(identity.cwd)
        sys.path[:] = identity.path
        rank_folder = Path(identity.folder, f"rank-{self.rank}")
        rank_folder.mkdir(exist_ok=True)
        faulthandler.enable(Path(rank_folder, "fault").open("wb"))  # noqa: SIM115
        # DataLoader workers put their sockets there, and a killed rank cannot remove them.
        vars(multiprocessing.process.current_process())["_config"]["tempdir"] = str(rank_folder)
        seed_from_system()
        drop_server_finalizers()
        warnings.formatwarning = _format_warning
        import torch
        import torch.distributed as dist
        from torch._C import _distributed_c10d as c10d

        torch.set_num_threads(1)
        c10d.set_debug_level_from_env()  # torch has read it on import, before the fork.
        torch_fixes.install()
        stores.install(f"{identity.folder}/store")
        export_main_on_spawn(rank_folder)
        self._start_recording(identity.options)
        become_rank(identity.folder, self._ask, self.channel.reporter(), self.recorder)
        os.register_at_fork(after_in_child=self._detach_forked_child)
        if identity.options.init:
            join_group(identity)
        if is_cell:  # Under `launch`, a function can use only the names sent with it.
            self.namespace.update(
                rank=self.rank, world_size=self.world_size, torch=torch, dist=dist
            )

    def _start_recording(self, options: Options) -> None:
        from math import inf

        from helpers.trace import kernels
        from helpers.trace.events import MAX_EVENTS
        from helpers.trace.log import Log
        from helpers.trace.recorder import Recorder

        if not options.trace:
            kernels.uninstall()  # The server installed the kernels before the fork.
            os.close(LOG_FD)
            return
        kernels.install()
        if has_gpu_driver():
            kernels.install("cuda")
        self.log = Log(LOG_FD, self.rank)
        os.close(LOG_FD)  # The mapping stays valid.
        self.recorder = Recorder(
            self.rank,
            self.log.write,
            record_values=options.record_values,
            max_events=inf if options.keeps_last_calls else MAX_EVENTS,
        )
        kernels.record_with(self.recorder)

    def _report_imports(self) -> None:
        """Report slow imports of torch's modules during this task. Only rank 0 reports, for all ranks."""
        if self.rank == 0 and len(sys.modules) >= self.module_count + _SLOW_IMPORT_MODULES:
            late = [
                name for name in list(sys.modules)[self.module_count :] if name.startswith("torch.")
            ]
            message = json.encode(late)
            if late and len(message) <= wire.MAX_BYTES[wire.IMPORTED]:
                self.channel.send(wire.IMPORTED, message)

    def _wait_for_status(self) -> None:
        """Wait until no report is being made, because a report keeps the task's frames and objects alive.

        For example, a FileStore removes its file when its last object is freed.
        """
        if self.status_lock.acquire(timeout=_STATUS_TIMEOUT_S):
            self.status_lock.release()

    def _ask(self, question: list[Any]) -> Any:
        """Ask the launcher a question and return its reply, for one thread at a time."""
        with self.ask_lock:
            self.channel.send(wire.QUESTION, json.encode(question))
            try:
                return json.decode(self.replies.get(timeout=_REPLY_TIMEOUT_S))
            except queue.Empty:
                raise TimeoutError("the launcher does not reply") from None

    def _receive_frames(self) -> None:
        """Receive the launcher's frames until it closes the channel."""
        main_thread, this_thread = threading.main_thread().ident or 0, threading.get_native_id()
        try:
            while True:
                kind, body = wire.recv_frame(self.sock)
                if kind == wire.TASK:
                    self.tasks.put(body)
                elif kind == wire.REPLY:
                    self.replies.put(body)
                elif kind == wire.ASK:
                    with self.status_lock:
                        report = status(main_thread, this_thread)
                    self.channel.send(wire.STATUS, json.encode(report))
        except (EOFError, OSError):
            # The launcher has exited. The main thread may be in C++, where no exception reaches it.
            os._exit(0)

    def _detach_forked_child(self) -> None:
        """Detach a process that the learner's code forks, such as a DataLoader worker, from the launcher."""
        self.is_forked_child = True
        if self.recorder is not None:
            from helpers.trace import kernels

            kernels.stop_in_child(functools.partial(report_child_call, os.getppid()))
        self.channel.closed = True
        with contextlib.suppress(OSError):
            self.sock.close()


class _Channel:
    """The connection to the launcher. It sends the frames of all threads one after another."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.closed = False
        self._send_lock = threading.Lock()

    def send(self, kind: int, *chunks: bytes | memoryview) -> None:
        if not self.closed:
            with self._send_lock:
                wire.send_frame(self.sock, kind, *chunks)

    def reporter(self) -> Callable[[str], None]:
        """Return a function that sends a REPLACED frame without looking up names that a task can replace."""
        lock, sendall, pack = self._send_lock, self.sock.sendall, wire.HEADER.pack
        kind, max_bytes = wire.REPLACED, wire.MAX_BYTES[wire.REPLACED]

        def report(names: str) -> None:
            body = names.encode()[:max_bytes]
            with lock:
                sendall(pack(kind, body.__len__()) + body)

        return report


def join_group(identity: Identity) -> None:
    """Join the default process group over a `FileStore`, which on one machine is faster than a TCPStore."""
    import torch
    import torch.distributed as dist
    from torch._C import _distributed_c10d as c10d

    rank, world_size, backend = identity.rank, identity.options.world_size, identity.options.backend
    # Connect each pair on first use. In smaller worlds, connecting all at once is faster.
    if world_size >= 24:
        os.environ.setdefault("TORCH_GLOO_LAZY_INIT", "1")
    if "nccl" in backend:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    if identity.store:
        host, _, port = identity.store.rpartition(":")
        if rank != 0:
            _wait_for_listener(host, int(port))
        store = c10d.TCPStore(
            host, int(port), world_size, rank == 0, _RENDEZVOUS_TIMEOUT, wait_for_workers=False
        )
        dist.init_process_group(backend, store=store, rank=rank, world_size=world_size)
        # Between hosts, this replaces the lock below: the last rank to join releases all ranks.
        if store.add("joined", 1) == world_size:
            store.set("all joined", "")
        store.wait(["all joined"], _RENDEZVOUS_TIMEOUT)
        return
    with _wait_until_all_joined(f"{identity.folder}/joining"):
        file = c10d.FileStore(f"{identity.folder}/store", world_size)
        dist.init_process_group(backend, store=file, rank=rank, world_size=world_size)


def _wait_for_listener(host: str, port: int) -> None:
    """Wait until rank 0's store is listening.

    After a refused connection, a TCPStore waits half a second or longer before trying again (torch 2.13). The
    ranks of one launch begin at the same time, so some always try to connect before rank 0 is listening.
    """
    deadline = time.monotonic() + _RENDEZVOUS_TIMEOUT.total_seconds()
    while time.monotonic() < deadline:
        with contextlib.suppress(ConnectionRefusedError):
            socket.create_connection(
                (host, port), timeout=_RENDEZVOUS_TIMEOUT.total_seconds()
            ).close()
            return
        time.sleep(0.002)


@contextmanager
def _wait_until_all_joined(path: str) -> Iterator[None]:
    """Wait, at the end of the block, until every rank has left it.

    A rank has all its gloo connections before its peers have seen all of theirs. If its first line destroys
    the group, a peer that is still connecting fails: "Connection closed by peer" in one launch of three. So
    each rank holds a shared lock while joining, and then waits for the exclusive lock, which is free once no
    rank is joining. No rank can finish joining before all ranks have begun, so none is missed. Waking a
    waiter takes the kernel about 20 us. A barrier over gloo would cause traffic, visible in traces and byte
    counts.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield
        fcntl.flock(file, fcntl.LOCK_UN)
        fcntl.flock(file, fcntl.LOCK_EX)
    finally:
        os.close(file)


def run_cell(source: str, file: str, namespace: dict[str, Any]) -> Any:
    """Execute a cell's source. Like a notebook, return the value of the cell's last expression."""
    import ast

    tree = ast.parse(source, file)
    last_expression = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, file, "exec"), namespace)
    if last_expression is None:
        return None
    assert isinstance(last_expression, ast.Expr)
    return eval(compile(ast.Expression(last_expression.value), file, "eval"), namespace)


def _sendable_or_none(value: Any) -> Any:
    """Return a cell's value. If it cannot be sent, for example a module, print it and return None."""
    try:
        wire.encode(value)
    except wire.CannotReturn:
        print(repr(value))
        return None
    return value


def _split_task(body: bytearray) -> tuple[Task, memoryview]:
    # Unpickling is safe: only the launcher writes to this channel.
    (length,) = wire.LENGTH.unpack_from(body)
    start = wire.LENGTH.size
    return pickle.loads(body[start : start + length]), memoryview(body)[start + length :]


def _read_payload(task: Task, payload: memoryview) -> tuple[Any, Any]:
    """Read the shared objects of all ranks, or None, and this rank's additional arguments.

    The launching process's settings are applied first. One Unpickler reads everything: see `sending.dumps`.
    The Unpickler keeps all objects that it has read, so it is dropped here.
    """
    reader = pickle.Unpickler(io.BytesIO(payload))
    if task.has_settings:
        apply_settings(*reader.load())
    shared = reader.load() if task.shared else None
    return shared, reader.load() if len(payload) > task.shared else ()


def _register_cell(file: str, cell: Source) -> None:
    """Make a notebook cell's lines visible to tracebacks, warnings and inspect.getsource."""
    lines = cell.text.splitlines(keepends=True)
    linecache.cache[file] = (len(cell.text), None, lines, file)
    _CELL_NAMES[file] = cell.name


_CELL_NAMES: dict[str, str] = {}  # file -> "cell [5]", for the cells known to this rank
_plain_warning = warnings.formatwarning


def _format_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    """Show the cell's name in a warning instead of the kernel's temporary file."""
    if filename not in _CELL_NAMES:
        return _plain_warning(message, category, filename, lineno, line)
    text = line if line is not None else linecache.getline(filename, lineno)
    place = f"{_CELL_NAMES[filename]}, line {lineno}"
    return f"{place}: {category.__name__}: {message}\n  {text.strip()}\n"


def _flush_output() -> None:
    sys.stdout.flush()
    sys.stderr.flush()


def flush_each_line() -> None:
    """Flush print() after each line, so that the launcher sees it at once."""
    for name, fd in (("stdout", 1), ("stderr", 2)):
        raw = open(fd, "wb", 0, closefd=False)  # noqa: SIM115 (for the life of the process)
        setattr(sys, name, io.TextIOWrapper(raw, "utf-8", "replace", line_buffering=True))


def start(fd: int, output_fd: int, log_fd: int) -> None:
    """Make this process the rank with the channel `fd` and the output `output_fd`. Never returns."""
    null = os.open(os.devnull, os.O_RDONLY)
    # From here on only these five descriptors exist. Copies of the server's descriptors or of other ranks'
    # channels would hide the fact that these connections have closed, and a learner's code could write to
    # them.
    os.dup2(null, 0)
    os.dup2(output_fd, 1)
    os.dup2(output_fd, 2)
    fd, log_fd = os.dup(fd), os.dup(log_fd)  # so that neither has the number needed for the other
    os.dup2(fd, CHANNEL_FD, inheritable=False)
    os.dup2(log_fd, LOG_FD, inheritable=False)
    os.closerange(LOG_FD + 1, _highest_fd())
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the server ignores it
    _let_threads_finish_their_slices()
    flush_each_line()
    main(socket.socket(fileno=CHANNEL_FD))


def _let_threads_finish_their_slices() -> None:
    """Keep waking threads from interrupting running ones, here and in all processes started from here.

    If a message wakes gloo's thread while the main thread holds the connection's lock, gloo's thread polls
    without a pause until its slice ends. With more ranks than cores, such polling took a quarter of a check's
    processor time.
    """
    if hasattr(os, "SCHED_BATCH"):
        with contextlib.suppress(OSError):  # a sandbox may refuse it
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _highest_fd() -> int:
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(soft if soft > 0 else 1 << 16, 1 << 20)


if __name__ == "__main__":
    start(*(int(fd) for fd in sys.argv[1:4]))
