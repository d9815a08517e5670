"""Inside one rank: join the group, call the function, send back what happened.

The server calls `main` in a freshly forked process; where fork is unsafe, the server starts this
module as a program. Either way the rank gets two descriptors of its own: the channel to its
launcher, which is also its identity, and the pipe that takes what it prints.
"""

from __future__ import annotations

import _thread
import atexit
import builtins
import contextlib
import faulthandler
import fcntl
import io
import json
import linecache
import multiprocessing.process
import os
import pickle
import queue
import random
import signal
import socket
import sys
import threading
import time
import types
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from helpers.ranks import reducers, rendezvous, stores, wire
from helpers.ranks.children import end_forked_child, let_spawned_children_find_main
from helpers.ranks.inside import set_ask, set_folder, set_recorder
from helpers.ranks.settings import apply_settings
from helpers.ranks.status import status

CHANNEL_FD, LOG_FD = 3, 4
"""The only descriptors that a rank has besides 0, 1 and 2."""
MARK = "REAL_RANKS_INSIDE"
"""Set in every rank's environment: nothing may be launched from there."""

_MAX_MESSAGE = 20_000
_MOST_NOTES = 20
_UNREADABLE = "(its message could not be read)"
_MANY = 50
"""Modules whose import takes so long that the server had better do it, once for all ranks."""
_REPLY_S = 60.0
"""How long a rank waits for a reply: the launcher's own deadlines are shorter."""


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
        self.namespace: dict[str, Any] = _fresh_main()
        self.most_result = wire.MAX_BYTES[wire.RESULT]
        self.modules = 0
        """How many were imported when the task began."""
        self.is_forked_child = False
        """This process was forked by the learner's code: it has the rank's memory, but is not the rank."""

    def serve(self) -> None:
        # Not by `threading`, whose list of threads shows the learner's own, as in any other process.
        _thread.start_new_thread(self._listen, ())
        while True:
            head, payload = _split(self.tasks.get())
            self.run(head, payload)

    def run(self, head: dict[str, Any], payload: memoryview) -> None:
        """Do one task and answer with RESULT or ERROR, whatever the task does."""
        try:
            if "rank" in head:
                self._set_up(head)
            elif head["rewind"] and self.log is not None:
                self.log.rewind()
            self.modules = len(sys.modules)
            value = self._work(head, payload)
            if self.is_forked_child:
                end_forked_child(None)
            if self.recorder is not None:
                self.recorder.settle()
            self._tell_imports()
            chunks = wire.encode(value, self.most_result)
            if head["do"] == "call":
                _end_as_a_process_does()
            _flush_output()
            self.channel.send(wire.RESULT, *chunks)
        except BaseException as error:  # SystemExit and KeyboardInterrupt are the learner's as well
            if self.is_forked_child:
                end_forked_child(error)
            with contextlib.suppress(Exception):
                _flush_output()
            self.channel.send(wire.ERROR, json.dumps(describe_error(error)).encode())

    def _work(self, head: dict[str, Any], payload: memoryview) -> Any:
        for file, (name, text) in head["cells"].items():
            _know_cell(file, name, text)
        with _leaving_well_is_returning():
            if head["do"] == "cell":
                self.namespace.update(_shared(head, payload) or {})
                return _shown(run_cell(head["source"], head["file"], self.namespace))
            fn, args = _shared(head, payload)
            own = pickle.loads(payload[head["shared"] :]) if len(payload) > head["shared"] else ()
            value = fn(self.rank, self.world_size, *args, *own)
            _join_threads()
            return value
        return None

    def _set_up(self, head: dict[str, Any]) -> None:
        """Become rank `head["rank"]`: environment, folders, random state, process group."""
        self.rank, self.world_size = int(head["rank"]), int(head["world_size"])
        self.most_result = int(head["most_result"])
        for name in head["unset"]:
            os.environ.pop(name, None)
        os.environ.update(head["env"])
        os.environ[MARK] = "1"
        time.tzset()  # TZ may be another one than the server's
        _use_temp(head["temp"])
        set_folder(head["folder"])
        set_ask(self._ask)
        with contextlib.suppress(OSError):
            os.chdir(head["cwd"])
        sys.path[:] = head["path"]
        own = Path(head["folder"], f"rank-{self.rank}")
        own.mkdir(exist_ok=True)
        faulthandler.enable(Path(own, "fault").open("wb"))  # noqa: SIM115
        # The sockets of DataLoader's workers lie there. A rank that is killed cannot remove them.
        vars(multiprocessing.process.current_process())["_config"]["tempdir"] = str(own)
        _seed_like_a_new_process()
        _forget_the_servers_end()
        warnings.formatwarning = _format_warning
        import torch
        import torch.distributed as dist
        from torch._C import _distributed_c10d as c10d

        torch.set_num_threads(1)
        c10d.set_debug_level_from_env()  # it was read once at import, before the fork
        rendezvous.install()
        stores.install(f"{head['folder']}/store")
        reducers.install()
        let_spawned_children_find_main(own)
        self._record(head["trace"], head["watched"], head["backend"])
        os.register_at_fork(after_in_child=self._leave_child_alone)
        if head["init"]:
            join_group(self.rank, self.world_size, head["backend"], head["folder"])
        if head["do"] == "cell":  # a function under launch has no name that it did not bring along
            self.namespace.update(
                rank=self.rank, world_size=self.world_size, torch=torch, dist=dist
            )

    def _record(self, trace: bool, watched: bool, backend: str) -> None:
        from helpers.trace import kernels
        from helpers.trace.log import Log
        from helpers.trace.recorder import Recorder

        if not trace:
            kernels.uninstall()  # the server put them in place before the fork
            os.close(LOG_FD)
            return
        kernels.install()
        if "nccl" in backend:
            kernels.install("cuda")
        self.log = Log(LOG_FD, self.rank)
        os.close(LOG_FD)  # what is mapped stays
        self.recorder = Recorder(self.rank, self.log.write, watched=watched)
        kernels.record_with(self.recorder)
        set_recorder(self.recorder)

    def _tell_imports(self) -> None:
        """Tell what of torch this task had to import, where that took long: rank 0 speaks for all."""
        if self.rank == 0 and len(sys.modules) >= self.modules + _MANY:
            late = [name for name in list(sys.modules)[self.modules :] if name.startswith("torch.")]
            told = json.dumps(late).encode()
            if late and len(told) <= wire.MAX_BYTES[wire.IMPORTED]:
                self.channel.send(wire.IMPORTED, told)

    def _ask(self, question: list[Any]) -> Any:
        """Ask the launcher what only it knows; give its reply. From one thread at a time."""
        with self.asking:
            self.channel.send(wire.QUESTION, json.dumps(question).encode())
            try:
                return json.loads(self.replies.get(timeout=_REPLY_S))
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
                    self.channel.send(wire.STATUS, json.dumps(status(main, own)).encode())
        except (EOFError, OSError):
            os._exit(0)  # the launcher has gone

    def _leave_child_alone(self) -> None:
        """In a process that the learner forks, a DataLoader's worker for example: it is not the rank."""
        self.is_forked_child = True
        if self.recorder is not None:
            self.recorder.active = False
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


def join_group(rank: int, world_size: int, backend: str, folder: str) -> None:
    """Join the default process group over a `FileStore`, which beats a TCPStore on one machine."""
    import torch
    import torch.distributed as dist
    from torch._C import _distributed_c10d as c10d

    if world_size >= 24:  # connect pairs when first used: below that, all at once is faster
        os.environ.setdefault("TORCH_GLOO_LAZY_INIT", "1")
    if "nccl" in backend:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    with _until_all_have_joined(f"{folder}/joining"):
        store = c10d.FileStore(f"{folder}/store", world_size)
        dist.init_process_group(backend, store=store, rank=rank, world_size=world_size)


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


def _split(body: bytearray) -> tuple[dict[str, Any], memoryview]:
    (length,) = wire.LENGTH.unpack_from(body)
    start = wire.LENGTH.size
    return json.loads(body[start : start + length]), memoryview(body)[start + length :]


def _shared(head: dict[str, Any], payload: memoryview) -> Any:
    """Read what all ranks are given, after setting what the launching process has set; None if nothing is.

    One Unpickler reads both: see `sending.dumps`. It retains all that it has read, so it ends here.
    """
    reader = pickle.Unpickler(io.BytesIO(payload[: head["shared"]]))
    if head["settings"]:
        apply_settings(*reader.load())
    return reader.load() if head["shared"] else None


def _fresh_main() -> dict[str, Any]:
    """Give this process an empty `__main__`, as a new interpreter has, in place of the server's."""
    module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = module
    return module.__dict__


def _use_temp(folder: str) -> None:
    """Use `folder` for temporary files; "": the launcher's, as processes under torchrun do.

    There what one rank saves is there for all, and for the next launch: notebooks save in one cell
    and load in another.
    """
    import tempfile

    if folder:
        Path(folder).mkdir(exist_ok=True)
        os.environ["TMPDIR"] = folder
    tempfile.tempdir = None  # what the server found: the environment may say something else now


def _seed_like_a_new_process() -> None:
    """Undo what the fork copied: all random states begin where nobody knows.

    So it is in every new process: torch.initial_seed(), random and numpy's global state differ
    from rank to rank and from run to run under torchrun and mp.spawn (measured with torch 2.13).
    One thing cannot be undone: hash() of a text is the same on all forked ranks, where new processes
    have each its own, because strings that live already know their hash.
    """
    import torch

    torch.default_generator.seed()
    random.seed()
    if "numpy.random" in sys.modules:  # otherwise it seeds itself when it is first imported
        sys.modules["numpy.random"].seed()


_OF_THE_SERVER: list[object] = []


def _forget_the_servers_end() -> None:
    """Leave to the server what it would do at its end."""
    atexit._clear()
    if (logging := sys.modules.get("logging")) is not None:  # what a new process registers as well
        atexit.register(logging.shutdown)
    if (util := sys.modules.get("multiprocessing.util")) is not None:
        atexit.register(util._exit_function)
    # Not emptied but kept elsewhere: each page with one of them would have to be copied.
    finalize: Any = weakref.finalize
    _OF_THE_SERVER.append(finalize._registry)
    finalize._registry = {}


def _join_threads() -> None:
    """Wait for threads that are not daemons, as Python does when its main program has ended."""
    for call in reversed(getattr(threading, "_threading_atexits", ())):
        call()  # a pool's threads wait forever until this tells them to go
    threading.__dict__.get("_threading_atexits", []).clear()
    own = threading.current_thread()
    while left := [t for t in threading.enumerate() if t is not own and not t.daemon]:
        left[0].join()


def _end_as_a_process_does() -> None:
    """Run what the learner's code has asked to be run at the end: the rank itself is killed later."""
    atexit._run_exitfuncs()
    for finalizer in list(vars(weakref.finalize)["_registry"]):
        if finalizer.atexit:
            finalizer()


@contextmanager
def _leaving_well_is_returning() -> Iterator[None]:
    """Take sys.exit(), or sys.exit(0), for an end without a value, as programs that start processes do."""
    try:
        yield
    except SystemExit as leave:
        if leave.code not in (None, 0):
            raise
        _join_threads()


def _know_cell(file: str, name: str, text: str) -> None:
    """Have tracebacks, warnings and inspect.getsource show the lines of a notebook's cell."""
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    _CELL_NAMES[file] = name


_CELL_NAMES: dict[str, str] = {}
"""file -> "cell [5]", for the cells that this rank knows"""
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


def describe_error(error: BaseException) -> dict[str, Any]:
    """Put an exception into plain data: its kind, its text and its frames, innermost last.

    Its class may be the learner's own, and any attribute of it something else than Python's: whatever
    comes of reading them, the rank has raised, and says so.
    """
    try:
        frames, text = _frames_of(error), _text_of(error)
    except BaseException:  # an attribute's own code may raise anything
        frames, text = [], _UNREADABLE
    return {
        "kind": _kind_of(error),
        "message": text,
        "frames": frames,
        "when_ns": time.monotonic_ns(),
    }


def _kind_of(error: BaseException) -> str:
    """Name an exception's class; not by its metaclass, which may say something else, or raise."""
    return _plain(vars(type)["__name__"].__get__(type(error)))


def _frames_of(error: BaseException) -> list[list[Any]]:
    frames: list[list[Any]] = []
    trace: types.TracebackType | None = _own(error, "__traceback__")
    while trace is not None:
        code = trace.tb_frame.f_code
        frames.append([code.co_filename, trace.tb_lineno or 0, code.co_name])
        trace = trace.tb_next
    if issubclass(type(error), SyntaxError):  # isinstance asks the object
        file, line = (vars(SyntaxError)[name].__get__(error) for name in ("filename", "lineno"))
        if type(file) is str and file:
            frames.append([file, line if type(line) is int else 0, "<module>"])
    return frames[-60:]


def _text_of(error: BaseException) -> str:
    parts = [_message_of(error)]
    notes = _own(error, "__dict__").get("__notes__")  # an answer may have set it to anything
    if type(notes) in {list, tuple}:
        parts += [f"\n{_said(note)}" for note in notes[:_MOST_NOTES]]
    if (cause := _own(error, "__cause__")) is not None:
        parts.append(f"\n(raised because of {_kind_of(cause)}: {_message_of(cause)})")
    return "".join(parts)[:_MAX_MESSAGE]


def _own(error: BaseException, name: str) -> Any:
    """Read what Python itself keeps of an exception, and not what its class has under that name."""
    return vars(BaseException)[name].__get__(error)


def _message_of(error: BaseException) -> str:
    if _kind_of(error) == "CheckpointException":
        with contextlib.suppress(Exception):
            return _of_each_rank(error)
    return _said(error)


def _said(value: object) -> str:
    """Return the text of an object, whatever kind of str its own code gives for it."""
    try:
        return _plain(str(value))
    except BaseException:  # SystemExit as well
        return _UNREADABLE


def _plain(text: str) -> str:
    """Return a text as a str: one of a class of its own may do anything when it is cut or joined."""
    return str.__getitem__(text, slice(_MAX_MESSAGE))


def _of_each_rank(error: Any) -> str:
    """Say what torch's CheckpointException holds. Its own text is the whole traceback of each rank."""
    ranks: dict[str, list[str]] = {}
    for rank, (cause, _) in error.failures.items():
        ranks.setdefault(f"{_kind_of(cause)}: {_message_of(cause)}", []).append(str(rank))
    return "; ".join(f"on rank {', '.join(who)}: {said}" for said, who in ranks.items())


def stream_output() -> None:
    """Make print() leave the process line by line, so that the launcher sees it at once."""
    for name, fd in (("stdout", 1), ("stderr", 2)):
        raw = open(fd, "wb", 0, closefd=False)  # noqa: SIM115 (for the life of the process)
        setattr(sys, name, io.TextIOWrapper(raw, "utf-8", "replace", line_buffering=True))


def start(fd: int, output_fd: int, log_fd: int) -> None:
    """Make this process the rank whose channel is `fd`, printing to `output_fd`. Never returns."""
    null = os.open(os.devnull, os.O_RDONLY)
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
