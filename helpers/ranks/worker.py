"""Inside one rank: join the group, call the function, send back what happened.

The server calls `main` in a freshly forked process; where fork is unsafe, the server starts this
module as a program. Either way the rank gets two descriptors of its own: the channel to its
launcher, which is also its identity, and the pipe that takes what it prints.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import os
import random
import signal
import socket
import sys
import threading
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from helpers.ranks import wire
from helpers.ranks.inside import set_recorder

MARK = "REAL_RANKS_INSIDE"
"""Set in every rank's environment: nothing may be launched from there."""

FLUSH_S = 0.05
STATUS_S = 0.25
_MAX_MESSAGE = 20_000


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
    """One rank: its channel, its recorder, its namespace."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.channel = _Channel(sock)
        self.recorder: Any = None
        self.busy = False
        self.namespace: dict[str, Any] = _fresh_main()

    def serve(self) -> None:
        while True:
            kind, body = wire.recv_frame(self.sock)
            if kind == wire.EXIT:
                return
            head, payload = _split(body)
            self.run(head, payload)

    def run(self, head: dict[str, Any], payload: memoryview) -> None:
        """Do one task and answer with RESULT or ERROR, whatever the task does."""
        self.busy = True
        try:
            if "rank" in head:
                self._set_up(head)
            value = self._work(head, payload)
            if self.recorder is not None:
                self.recorder.settle()
            chunks = wire.encode(value)
            _flush_output()
            self.channel.flush()
            self.channel.send(wire.RESULT, *chunks)
        except BaseException as error:  # SystemExit and KeyboardInterrupt are the learner's as well
            with contextlib.suppress(Exception):
                _flush_output()
            self.channel.flush()
            self.channel.send(wire.ERROR, json.dumps(describe_error(error)).encode())
        finally:
            self.busy = False

    def _work(self, head: dict[str, Any], payload: memoryview) -> Any:
        import cloudpickle

        if head["do"] == "cell":
            self.namespace.update(cloudpickle.loads(payload) if len(payload) else {})
            return _shown(run_cell(head["source"], head["file"], self.namespace))
        shared = cloudpickle.loads(payload[: head["shared"]])
        own = cloudpickle.loads(payload[head["shared"] :])
        fn, args = shared
        return fn(self.rank, self.world_size, *args, *own)

    def _set_up(self, head: dict[str, Any]) -> None:
        """Become rank `head["rank"]`: environment, folders, random state, process group."""
        self.rank, self.world_size = int(head["rank"]), int(head["world_size"])
        for name in head["unset"]:
            os.environ.pop(name, None)
        os.environ.update(head["env"])
        os.environ[MARK] = "1"
        _private_temp(head["temp"])
        with contextlib.suppress(OSError):
            os.chdir(head["cwd"])
        sys.path[:] = head["path"]
        faulthandler.enable(Path(head["temp"], "fault").open("wb"))  # noqa: SIM115
        _seed_like_a_new_process()
        import torch
        import torch.distributed as dist
        from torch._C import _distributed_c10d as c10d

        torch.set_num_threads(1)
        c10d.set_debug_level_from_env()  # it was read once at import, before the fork
        self._record(head["trace"], head["backend"])
        threading.Thread(target=self._report, name="real-ranks", daemon=True).start()
        os.register_at_fork(after_in_child=self._leave_child_alone)
        if head["init"]:
            join_group(self.rank, self.world_size, head["backend"], head["store"])
        self.namespace.update(
            rank=self.rank, world_size=self.world_size, torch=torch, dist=dist, __name__="__main__"
        )

    def _record(self, trace: bool, backend: str) -> None:
        from helpers.trace import kernels
        from helpers.trace.recorder import Recorder

        if not trace:
            kernels.uninstall()  # the server put them in place before the fork
            return
        kernels.install()
        if "nccl" in backend:
            kernels.install("cuda")
        self.recorder = Recorder(self.rank, self.channel.record)
        kernels.record_with(self.recorder)
        set_recorder(self.recorder)

    def _report(self) -> None:
        """Send what has gathered, and where the rank is, while the rank works."""
        last, due = "", 0.0
        pause = STATUS_S * max(1.0, self.world_size / 32)
        never = threading.Event()
        while True:
            never.wait(FLUSH_S)  # a futex; sleep() would look like a rank that sleeps
            try:
                self.channel.flush()
                if self.busy and time.monotonic() >= due and self.recorder is not None:
                    place, inside = self.recorder.whereabouts()
                    status = json.dumps({"at": place, "inside": inside})
                    if status != last:
                        self.channel.send(wire.STATUS, status.encode())
                    last, due = status, time.monotonic() + pause
            except OSError:
                os._exit(0)  # the launcher has gone

    def _leave_child_alone(self) -> None:
        """In a process that the learner forks (a DataLoader's worker): it is no rank."""
        if self.recorder is not None:
            self.recorder.active = False
        self.channel.closed = True
        with contextlib.suppress(OSError):
            self.sock.close()


class _Channel:
    """The way to the launcher: frames from any thread, records gathered into few of them."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.closed = False
        self._sending = threading.Lock()
        self._gathering = threading.Lock()
        self._gathered: list[str] = []

    def record(self, record: list[Any], urgent: bool) -> None:
        text = json.dumps(record, separators=(",", ":"))
        with self._gathering:  # flush() takes the list away: what is appended after that is lost
            self._gathered.append(text)
        if urgent:
            self.flush()

    def flush(self) -> None:
        if not self._gathered or self.closed:
            return
        with self._sending:
            with self._gathering:
                records, self._gathered = self._gathered, []
            for start in range(0, len(records), 1000):
                text = "[" + ",".join(records[start : start + 1000]) + "]"
                wire.send_frame(self.sock, wire.EVENTS, text.encode())

    def send(self, kind: int, *chunks: bytes | memoryview) -> None:
        if not self.closed:
            with self._sending:
                wire.send_frame(self.sock, kind, *chunks)


def join_group(rank: int, world_size: int, backend: str, store: str) -> None:
    """Join the default process group over a `FileStore`, which beats a TCPStore on one machine."""
    import torch
    import torch.distributed as dist
    from torch._C import _distributed_c10d as c10d

    if world_size >= 24:  # connect pairs when first used: below that, all at once is faster
        os.environ.setdefault("TORCH_GLOO_LAZY_INIT", "1")
    if "nccl" in backend:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group(
        backend, store=c10d.FileStore(store, world_size), rank=rank, world_size=world_size
    )


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
    """Give a cell's value, or print it where it cannot travel (a module, say), as a notebook would."""
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


def _fresh_main() -> dict[str, Any]:
    """Give this process an empty `__main__`, as a new interpreter has, in place of the server's."""
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    return module.__dict__


def _private_temp(folder: str) -> None:
    import tempfile

    Path(folder).mkdir(exist_ok=True)
    os.environ["TMPDIR"] = folder
    tempfile.tempdir = None


def _seed_like_a_new_process() -> None:
    """Undo what the fork copied: python and numpy seed from the system, torch has its default."""
    random.seed()
    if "numpy.random" in sys.modules:  # otherwise it seeds itself when it is first imported
        sys.modules["numpy.random"].seed()


def _flush_output() -> None:
    sys.stdout.flush()
    sys.stderr.flush()


def describe_error(error: BaseException) -> dict[str, Any]:
    """Put an exception into plain data: its kind, its text and its frames, innermost last."""
    frames = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        frames.append([code.co_filename, trace.tb_lineno or 0, code.co_name])
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename:
        frames.append([error.filename, error.lineno or 0, "<module>"])
    try:
        text = str(error)
    except Exception:
        text = "(its message could not be read)"
    kind = type(error).__name__
    return {
        "kind": kind,
        "message": text[:_MAX_MESSAGE],
        "frames": frames[-60:],
        "when_ns": time.monotonic_ns(),
    }


def stream_output() -> None:
    """Make print() leave the process line by line, so that the launcher sees it at once."""
    for name, fd in (("stdout", 1), ("stderr", 2)):
        raw = open(fd, "wb", 0, closefd=False)  # noqa: SIM115 (for the life of the process)
        setattr(sys, name, io.TextIOWrapper(raw, "utf-8", "replace", line_buffering=True))


def start(fd: int, output_fd: int, after: Callable[[], None] = lambda: None) -> None:
    """Make this process the rank whose channel is `fd`, printing to `output_fd`. Never returns."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(output_fd, 1)
    os.dup2(output_fd, 2)
    own = os.dup2(fd, 3) if fd != 3 else 3
    os.closerange(4, _highest_fd())
    os.set_inheritable(own, False)
    after()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the server ignores it
    stream_output()
    main(socket.socket(fileno=own))


def _highest_fd() -> int:
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(soft if soft > 0 else 1 << 16, 1 << 20)


if __name__ == "__main__":
    start(int(sys.argv[1]), int(sys.argv[2]))
