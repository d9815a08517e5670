"""Inside one rank: join the group, call the function, send back what happened.

The server calls `main` in a freshly forked process; where fork is unsafe, the server starts this
module as a program. Either way the rank gets two descriptors of its own: the channel to its
launcher, which is also its identity, and the pipe that takes what it prints.
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
from helpers.ranks.cells import Source
from helpers.ranks.inside import become_rank
from helpers.ranks.new_process import (
    end_as_a_process_does,
    end_forked_child,
    forget_the_servers_end,
    fresh_main,
    join_threads,
    leaving_well_is_returning,
    let_spawned_children_find_main,
    seed_like_a_new_process,
    use_temp,
)
from helpers.ranks.options import Identity, Options, Task, has_gpu_driver
from helpers.ranks.raised import describe_error
from helpers.ranks.settings import apply_settings
from helpers.ranks.status import status, tell_of_child

# The only descriptors that a rank has besides 0, 1 and 2.
CHANNEL_FD, LOG_FD = 3, 4
# Set in every rank's environment: nothing may be launched from there.
MARK = "REAL_RANKS_INSIDE"

# Modules whose import takes so long that the server had better do it, once for all ranks.
_MANY = 50
# How long a rank waits for a reply: the launcher's own deadlines are shorter.
_REPLY_S = 60.0
# How long ranks on several hosts wait for each other. The launch's own budget ends sooner.
_MEET = timedelta(minutes=5)


def main(sock: socket.socket) -> None:
    """Serve one launcher over `sock` until it says EXIT or goes away. Never returns."""
    try:
        rank = _Rank(sock)
        rank.serve()
    except (EOFError, ConnectionError):
        pass
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(0)  # no interpreter teardown: gloo's threads must not outlive Python's state


class _Rank:
    """One rank: its channel, its recorder, its namespace.

    The main thread does the tasks. Another one listens to the launcher: it hands tasks on, and says
    where the main thread is when it is asked, also while that thread is deep inside torch.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.channel = _Channel(sock)
        self.recorder: Any = None
        self.log: Any = None
        self.tasks: queue.SimpleQueue[bytearray] = queue.SimpleQueue()
        self.replies: queue.SimpleQueue[bytearray] = queue.SimpleQueue()
        self.asking = threading.Lock()
        self.namespace: dict[str, Any] = fresh_main()
        self.most_result = wire.MAX_BYTES[wire.RESULT]
        self.sent: list[dict[str, Any]] = []  # the namespaces of functions that were sent to cells
        self.modules = 0  # how many were imported when the task began
        # This process was forked by the learner's code: it has the rank's memory, but is not the rank.
        self.is_forked_child = False

    def serve(self) -> None:
        # Not by `threading`, whose list of threads shows the learner's own, as in any other process.
        _thread.start_new_thread(self._listen, ())
        while True:
            self.run(*_split(self.tasks.get()))

    def run(self, task: Task, payload: memoryview) -> None:
        """Do one task and answer with RESULT or ERROR, whatever the task does."""
        # Looked up before the task runs, which may put something else under these names.
        encode, send = wire.encode, self.channel.send
        try:
            if task.identity is not None:
                self._set_up(task.identity, is_cell=task.source is not None)
            elif task.rewind and self.log is not None:
                self.log.rewind()
            self.modules = len(sys.modules)
            value = self._work(task, payload)
            if self.is_forked_child:
                end_forked_child(None)
            if self.recorder is not None:
                self.recorder.settle()
            chunks = encode(value, self.most_result)
            if task.source is None:
                end_as_a_process_does()
            _flush_output()
            self._tell_imports()
            send(wire.RESULT, *chunks)
        except BaseException as error:  # SystemExit and KeyboardInterrupt are the learner's as well
            if self.is_forked_child:
                end_forked_child(error)
            with contextlib.suppress(Exception):
                _flush_output()
                self._tell_imports()
            send(wire.ERROR, json.encode(describe_error(error)))

    def _work(self, task: Task, payload: memoryview) -> Any:
        for file, cell in task.cells.items():
            _know_cell(file, cell)
        with leaving_well_is_returning():
            if task.source is not None:
                self._take_names(_shared(task, payload) or {})
                return _shown(run_cell(task.source, task.file, self.namespace))
            fn, args = _shared(task, payload)
            own = pickle.loads(payload[task.shared :]) if len(payload) > task.shared else ()
            value = fn(self.rank, self.world_size, *args, *own)
            join_threads()
            return value
        return None

    def _take_names(self, names: dict[str, Any]) -> None:
        """Give the cells the names that were sent, and functions that were sent before their new values.

        Those have a namespace of their own, so that nothing of the cells' is replaced when they are sent.
        """
        self.namespace.update(names)
        for own in self.sent:
            own.update({name: value for name, value in names.items() if name in own})
        functions = [
            f for value in names.values() for f in (value, *getattr(value, "__dict__", {}).values())
        ]
        self.sent += [f.__globals__ for f in functions if isinstance(f, types.FunctionType)]

    def _set_up(self, who: Identity, is_cell: bool) -> None:
        """Become that rank: environment, folders, random state, process group."""
        self.rank, self.world_size = who.rank, who.options.world_size
        self.most_result = who.most_result
        for name in who.unset:
            os.environ.pop(name, None)
        os.environ.update(who.env)
        os.environ[MARK] = "1"
        time.tzset()  # TZ may be another one than the server's
        use_temp(who.temp)
        with contextlib.suppress(OSError):
            os.chdir(who.cwd)
        sys.path[:] = who.path
        own = Path(who.folder, f"rank-{self.rank}")
        own.mkdir(exist_ok=True)
        faulthandler.enable(Path(own, "fault").open("wb"))  # noqa: SIM115
        # The sockets of DataLoader's workers lie there. A rank that is killed cannot remove them.
        vars(multiprocessing.process.current_process())["_config"]["tempdir"] = str(own)
        seed_like_a_new_process()
        forget_the_servers_end()
        warnings.formatwarning = _format_warning
        import torch
        import torch.distributed as dist
        from torch._C import _distributed_c10d as c10d

        torch.set_num_threads(1)
        c10d.set_debug_level_from_env()  # it was read once at import, before the fork
        torch_fixes.install()
        stores.install(f"{who.folder}/store")
        let_spawned_children_find_main(own)
        self._record(who.options)
        become_rank(who.folder, self._ask, self.channel.reporter(), self.recorder)
        os.register_at_fork(after_in_child=self._leave_child_alone)
        if who.options.init:
            join_group(who)
        if is_cell:  # a function under launch has no name that it did not bring along
            self.namespace.update(
                rank=self.rank, world_size=self.world_size, torch=torch, dist=dist
            )

    def _record(self, options: Options) -> None:
        from helpers.trace import kernels
        from helpers.trace.log import Log
        from helpers.trace.recorder import Recorder

        if not options.trace:
            kernels.uninstall()  # the server put them in place before the fork
            os.close(LOG_FD)
            return
        kernels.install()
        if has_gpu_driver():
            kernels.install("cuda")
        self.log = Log(LOG_FD, self.rank)
        os.close(LOG_FD)  # what is mapped stays
        self.recorder = Recorder(self.rank, self.log.write, watched=options.watched)
        kernels.record_with(self.recorder)

    def _tell_imports(self) -> None:
        """Tell what of torch this task had to import, where that took long: rank 0 speaks for all."""
        if self.rank == 0 and len(sys.modules) >= self.modules + _MANY:
            late = [name for name in list(sys.modules)[self.modules :] if name.startswith("torch.")]
            told = json.encode(late)
            if late and len(told) <= wire.MAX_BYTES[wire.IMPORTED]:
                self.channel.send(wire.IMPORTED, told)

    def _ask(self, question: list[Any]) -> Any:
        """Ask the launcher what only it knows; give its reply. From one thread at a time."""
        with self.asking:
            self.channel.send(wire.QUESTION, json.encode(question))
            try:
                return json.decode(self.replies.get(timeout=_REPLY_S))
            except queue.Empty:
                raise TimeoutError("the launcher does not reply") from None

    def _listen(self) -> None:
        """Take in what the launcher says, for as long as it is there."""
        main, own = threading.main_thread().ident or 0, threading.get_native_id()
        try:
            while True:
                kind, body = wire.recv_frame(self.sock)
                if kind == wire.TASK:
                    self.tasks.put(body)
                elif kind == wire.REPLY:
                    self.replies.put(body)
                elif kind == wire.ASK:
                    self.channel.send(wire.STATUS, json.encode(status(main, own)))
        except (EOFError, OSError):
            # The launcher has gone. The main thread may be deep inside C++, where no exception reaches it.
            os._exit(0)

    def _leave_child_alone(self) -> None:
        """In a process that the learner forks, a DataLoader's worker for example: it is not the rank."""
        self.is_forked_child = True
        if self.recorder is not None:
            from helpers.trace import kernels

            kernels.stop_in_child(functools.partial(tell_of_child, os.getppid()))
        self.channel.closed = True
        with contextlib.suppress(OSError):
            self.sock.close()


class _Channel:
    """The way to the launcher: frames from any thread, one after the other."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.closed = False
        self._sending = threading.Lock()

    def send(self, kind: int, *chunks: bytes | memoryview) -> None:
        if not self.closed:
            with self._sending:
                wire.send_frame(self.sock, kind, *chunks)

    def reporter(self) -> Callable[[str], None]:
        """Return what sends a REPLACED frame and looks up nothing that the rank's task can replace."""
        lock, sendall, pack = self._sending, self.sock.sendall, wire.HEADER.pack
        kind, most = wire.REPLACED, wire.MAX_BYTES[wire.REPLACED]

        def report(names: str) -> None:
            body = names.encode()[:most]
            with lock:
                sendall(pack(kind, body.__len__()) + body)

        return report


def join_group(who: Identity) -> None:
    """Join the default process group over a `FileStore`, which beats a TCPStore on one machine."""
    import torch
    import torch.distributed as dist
    from torch._C import _distributed_c10d as c10d

    rank, world_size, backend = who.rank, who.options.world_size, who.options.backend
    if world_size >= 24:  # connect pairs when first used: below that, all at once is faster
        os.environ.setdefault("TORCH_GLOO_LAZY_INIT", "1")
    if "nccl" in backend:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    if who.store:
        host, _, port = who.store.rpartition(":")
        if rank != 0:
            _wait_for_listener(host, int(port))
        store = c10d.TCPStore(host, int(port), world_size, rank == 0, _MEET, wait_for_workers=False)
        dist.init_process_group(backend, store=store, rank=rank, world_size=world_size)
        # What the lock below is for, between hosts: the last one to join lets all go on.
        if store.add("joined", 1) == world_size:
            store.set("all joined", "")
        store.wait(["all joined"], _MEET)
        return
    with _until_all_have_joined(f"{who.folder}/joining"):
        file = c10d.FileStore(f"{who.folder}/store", world_size)
        dist.init_process_group(backend, store=file, rank=rank, world_size=world_size)


def _wait_for_listener(host: str, port: int) -> None:
    """Wait until rank 0's store listens.

    A TCPStore that is refused tries again after half a second and more (torch 2.13): of the ranks of one
    launch, which begin at the same time, some always come before rank 0.
    """
    until = time.monotonic() + _MEET.total_seconds()
    while time.monotonic() < until:
        with contextlib.suppress(ConnectionRefusedError):
            socket.create_connection((host, port), timeout=_MEET.total_seconds()).close()
            return
        time.sleep(0.002)


@contextmanager
def _until_all_have_joined(path: str) -> Iterator[None]:
    """Go on when every rank has left the block.

    A rank is through gloo's connections before its peers have seen all of theirs. Where its first
    line destroys the group, a peer that still connects fails: "Connection closed by peer" in one
    launch of three. Each rank holds a shared lock while it joins, and the exclusive one is free when
    nobody joins any more; as no rank is through before all have come, none is missed. The kernel
    wakes who waits, some 20 us each: a barrier over gloo would be traffic that a trace or a count
    of bytes shows.
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
    """Execute a cell's source; give the value of its last expression, as a notebook does."""
    import ast

    tree = ast.parse(source, file)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, file, "exec"), namespace)
    if last is None:
        return None
    assert isinstance(last, ast.Expr)
    return eval(compile(ast.Expression(last.value), file, "eval"), namespace)


def _shown(value: Any) -> Any:
    """Return a cell's value, or print it where it cannot be sent (a module, say), as a notebook would."""
    try:
        wire.encode(value)
    except wire.CannotReturn:
        print(repr(value))
        return None
    return value


def _split(body: bytearray) -> tuple[Task, memoryview]:
    # Unpickled: the launcher's own object, on a channel that nobody else writes to.
    (length,) = wire.LENGTH.unpack_from(body)
    start = wire.LENGTH.size
    return pickle.loads(body[start : start + length]), memoryview(body)[start + length :]


def _shared(task: Task, payload: memoryview) -> Any:
    """Read what all ranks are given, after setting what the launching process has set; None if nothing is.

    One Unpickler reads both: see `sending.dumps`. It retains all that it has read, so it ends here.
    """
    reader = pickle.Unpickler(io.BytesIO(payload[: task.shared]))
    if task.settings:
        apply_settings(*reader.load())
    return reader.load() if task.shared else None


def _know_cell(file: str, cell: Source) -> None:
    """Have tracebacks, warnings and inspect.getsource show the lines of a notebook's cell."""
    lines = cell.text.splitlines(keepends=True)
    linecache.cache[file] = (len(cell.text), None, lines, file)
    _CELL_NAMES[file] = cell.name


_CELL_NAMES: dict[str, str] = {}  # file -> "cell [5]", for the cells that this rank knows
_plain_warning = warnings.formatwarning


def _format_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    """Name the cell that a warning speaks of, in place of the kernel's temporary file."""
    if filename not in _CELL_NAMES:
        return _plain_warning(message, category, filename, lineno, line)
    text = line if line is not None else linecache.getline(filename, lineno)
    place = f"{_CELL_NAMES[filename]}, line {lineno}"
    return f"{place}: {category.__name__}: {message}\n  {text.strip()}\n"


def _flush_output() -> None:
    sys.stdout.flush()
    sys.stderr.flush()


def stream_output() -> None:
    """Make print() leave the process line by line, so that the launcher sees it at once."""
    for name, fd in (("stdout", 1), ("stderr", 2)):
        raw = open(fd, "wb", 0, closefd=False)  # noqa: SIM115 (for the life of the process)
        setattr(sys, name, io.TextIOWrapper(raw, "utf-8", "replace", line_buffering=True))


def start(fd: int, output_fd: int, log_fd: int) -> None:
    """Make this process the rank whose channel is `fd`, printing to `output_fd`. Never returns."""
    null = os.open(os.devnull, os.O_RDONLY)
    # From here on the only descriptors are these five: those of the server, and of other ranks' channels,
    # would keep connections open that must be seen to end, and an answer could write to them.
    os.dup2(null, 0)
    os.dup2(output_fd, 1)
    os.dup2(output_fd, 2)
    fd, log_fd = os.dup(fd), os.dup(log_fd)  # so that neither is in the other's place
    os.dup2(fd, CHANNEL_FD, inheritable=False)
    os.dup2(log_fd, LOG_FD, inheritable=False)
    os.closerange(LOG_FD + 1, _highest_fd())
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the server ignores it
    stream_output()
    main(socket.socket(fileno=CHANNEL_FD))


def _highest_fd() -> int:
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(soft if soft > 0 else 1 << 16, 1 << 20)


if __name__ == "__main__":
    start(*(int(fd) for fd in sys.argv[1:4]))
