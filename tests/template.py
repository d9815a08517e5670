"""A process that has imported torch, and a `python` whose programs are forked from it.

    test --> python WORDS (waits) --words, environment, folder, descriptors--> template
                                                          template --fork--> runs the words

A notebook's imports cost a new process 2 to 4 s of a core, but a fork only some milliseconds. The template
has imported libraries but no module of the course. So a fork imports the course like a new process, and uses
this `python` as its interpreter: kernels, their rank servers and torchrun's workers are also forks. This is
for tests of programs' results. The start and end of processes is the subject of tests/ranks, tests/kernel,
tests/jobs and tests/conformance, which start new interpreters.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import importlib
import io
import itertools
import json
import logging
import multiprocessing.process
import os
import runpy
import select
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

READY_S, END_S = 120.0, 10.0
_MOST = 128 << 10
OPTIONS = ("-P", "-u", "-B")
_ENVIRONMENT = {
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",  # as in a kernel, before the import
    "OPENBLAS_NUM_THREADS": "1",  # otherwise numpy starts threads when it is imported
}
_LIBRARIES = (
    *("torch._dynamo", "torch.nn.parallel", "torch.optim", "torch.utils.data"),
    *("torch.distributed.fsdp", "torch.distributed.optim", "torch.distributed.pipelining"),
    *("torch.distributed.tensor.parallel", "torch.distributed.checkpoint"),
    *("torch.distributed.algorithms.join", "torch.distributed.device_mesh"),
    *("cloudpickle", "jinja2", "psutil", "matplotlib.backends.backend_agg", "sklearn.datasets"),
    *("ipykernel.kernelapp", "ipykernel.ipkernel", "ipywidgets"),
    *("pytest", "nbval.plugin", "nbformat"),
)


_SOCKET, _PYTHON = "template.socket", "python"


def wait_for_template(folder: Path) -> str:
    """Wait until a template started elsewhere is ready, and return the path of its `python`."""
    deadline = time.monotonic() + READY_S
    while not (folder / _SOCKET).exists():
        assert time.monotonic() < deadline, "the template does not start"
        time.sleep(0.1)
    return str(folder / _PYTHON)


@contextlib.contextmanager
def template(folder: Path) -> Iterator[str]:
    """Start a template, and yield the path of its `python`. All forks end with the template."""
    path, python = folder / _SOCKET, folder / _PYTHON
    here = Path(__file__)
    hand_over = shlex.join([sys.executable, "-IS", f"{here.parent}/quick/hand_over.py", str(path)])
    python.write_text(f'#!/bin/sh\nexec {hand_over} "$@"\n')
    python.chmod(0o755)
    for other in Path(sys.executable).parent.iterdir():  # programs looked up there, like mpiexec
        if not other.name.startswith("python"):
            (folder / other.name).symlink_to(other)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.template", str(path), str(python)],
        cwd=here.parents[1],
        env={**os.environ, **_ENVIRONMENT},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # a Ctrl-C for the tests must not end it
    )
    with process:
        assert process.stdin is not None and process.stdout is not None
        try:
            assert select.select([process.stdout], [], [], READY_S)[0], "it does not start"
            assert process.stdout.readline() == b"ready\n", "the template could not start"
            yield str(python)
        finally:
            process.stdin.close()  # which ends it
            try:
                process.wait(END_S)
            finally:
                process.kill()


# --- in the template ---------------------------------------------------------------------------------------


def main(path: str, python: str) -> None:
    """Fork programs requested by clients at the socket, until the standard input closes."""
    own = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    base = [entry for entry in sys.path[1:] if entry not in own]
    for name in _LIBRARIES:
        importlib.import_module(name)
    # torchrun's agents look up the name of a calling function by reading the source of a dozen others.
    rendezvous = importlib.import_module("torch.distributed.elastic.rendezvous.dynamic_rendezvous")
    rendezvous.get_method_name = lambda depth=2: sys._getframe(depth).f_code.co_name  # type: ignore[attr-defined]
    sys.executable = python
    psutil.Process.children = _children_of_fork  # type: ignore[method-assign]
    assert len(os.listdir("/proc/self/task")) == 1, "of all threads a fork copies only one"
    gc.freeze()
    # Otherwise each fork takes 30 ms instead of 10 ms. This must not import `helpers`: see above.
    runpy.run_path(str(Path(__file__).parents[1] / "helpers/ranks/huge_pages.py"))[
        "collapse_pages"
    ]()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path + ".new")
    listener.listen(100)
    os.rename(path + ".new", path)  # clients may connect as soon as the path exists
    wake, write = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    print("ready", flush=True)
    clients: dict[socket.socket, int] = {}
    # A kernel and its processes end with the process that started it. The kernel checks this by watching its
    # parent, but a forked kernel's parent is the template.
    owners: dict[int, int] = {}
    while True:
        readable = select.select([0, wake, listener, *clients], [], [])[0]
        if 0 in readable:  # no data is ever written, so it has closed
            break
        if listener in readable:
            client, _ = listener.accept()
            request, fds, _, _ = socket.recv_fds(client, _MOST, 64)
            if request:
                asked = json.loads(request)
                clients[client] = _fork(client, asked, fds, base)
                owners[clients[client]] = int(asked["env"].get("JPY_PARENT_PID", 0))
        with contextlib.suppress(BlockingIOError):
            os.read(wake, 4096)
        for client in set(readable) & set(clients):  # clients send no more data, so it has closed
            _end_tree(clients[client])
        for ended in _report_ends(clients):
            for pid in clients.values():
                if owners[pid] == ended:
                    os.kill(pid, signal.SIGKILL)
    for pid in clients.values():
        os.kill(pid, signal.SIGKILL)
    os._exit(0)


_children = psutil.Process.children


def _children_of_fork(self: psutil.Process, recursive: bool = False) -> list[psutil.Process]:
    """Return a process's children. For a process waiting for its fork, return the fork's children."""
    with contextlib.suppress(psutil.NoSuchProcess):
        name, _, pid = self.name().partition("-")
        if name == "fork" and pid.isdecimal():
            return _children(psutil.Process(int(pid)), recursive)
    return _children(self, recursive)


def _end_tree(pid: int) -> None:
    """End a fork and its processes, which are invisible to a caller that ends the waiting process."""
    with contextlib.suppress(psutil.NoSuchProcess):
        for each in [psutil.Process(pid), *_children(psutil.Process(pid), recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()


def _report_ends(clients: dict[socket.socket, int]) -> list[int]:
    """Send exit codes to the clients of ended forks, and forget them. Return the forks' process ids."""
    over = []
    for client, pid in list(clients.items()):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            with contextlib.suppress(OSError):
                client.send(json.dumps({"exit": os.waitstatus_to_exitcode(status)}).encode())
            client.close()
            del clients[client]
            over.append(pid)
    return over


def _fork(client: socket.socket, request: dict[str, Any], fds: list[int], base: list[str]) -> int:
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            code = _run(client, request, fds, base)
        finally:
            os._exit(code)
    for fd in fds:
        os.close(fd)
    return pid


def _run(client: socket.socket, request: dict[str, Any], fds: list[int], base: list[str]) -> int:
    """Become the requested program, in the child, and run it to its end. Return the exit code."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if request["session"]:
        os.setsid()
    client.send(json.dumps({"pid": os.getpid()}).encode())
    _take_descriptors(fds, request["fds"])
    os.chdir(request["cwd"])
    multiprocessing.process.ORIGINAL_DIR = os.getcwd()
    os.environ.clear()
    os.environ.update(request["env"])
    sys.modules["numpy"].random.seed()  # the fork itself already seeds Python's generator
    elastic = importlib.import_module("torch.distributed.elastic.utils.logging")
    for name in logging.root.manager.loggerDict:
        if name.startswith("torch.distributed.elastic"):
            elastic.get_logger(name)  # with the present level of LOGLEVEL
    code: object = 0
    try:
        _be_python(request["words"], base)
    except SystemExit as end:
        code = end.code
    except KeyboardInterrupt:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        code = 130
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        code = 1
    if isinstance(code, str):
        print(code, file=sys.stderr)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    return code if isinstance(code, int) else int(code is not None)


def _take_descriptors(fds: list[int], numbers: list[int]) -> None:
    """Move each descriptor to its new number, and leave no other descriptor open."""
    above = [fcntl.fcntl(fd, fcntl.F_DUPFD, 1000) for fd in fds]
    for fd, number in zip(above, numbers, strict=True):
        os.dup2(fd, number)
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in numbers:
            with contextlib.suppress(OSError):
                os.close(int(name))
    # the kind of each file decides its buffering
    sys.stdin = open(0, closefd=False, encoding="utf-8")  # noqa: SIM115 (as long as the process)
    sys.stdout = open(1, "w", closefd=False, encoding="utf-8")  # noqa: SIM115
    sys.stderr = open(2, "w", 1, closefd=False, encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]


def _be_python(words: list[str], base: list[str]) -> None:
    """Run `-c TEXT`, `-m MODULE` or a script with its arguments, as `__main__` of a new module."""
    options = [*itertools.takewhile(OPTIONS.__contains__, words)]
    words = words[len(options) :]
    if "-u" in options or os.environ.get("PYTHONUNBUFFERED"):
        raw = open(1, "wb", 0, closefd=False)  # noqa: SIM115
        sys.stdout = sys.__stdout__ = io.TextIOWrapper(raw, "utf-8", write_through=True)  # type: ignore[misc]
    given = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    is_script = not words[0].startswith("-")
    sys.path[:] = [str(Path(words[0]).resolve().parent) if is_script else "", *given, *base]
    sys.modules["__main__"] = types.ModuleType("__main__")
    space = vars(sys.modules["__main__"])
    space["__builtins__"] = __builtins__
    if words[0] == "-m":
        sys.path[0] = os.getcwd()
        sys.argv[:] = words[1:]
        runpy._run_module_as_main(words[1])  # type: ignore[attr-defined]
    elif words[0] == "-c":
        sys.argv[:] = ["-c", *words[2:]]
        exec(compile(words[1], "<string>", "exec"), space)
    else:
        sys.argv[:] = words
        space["__file__"] = words[0]
        exec(compile(Path(words[0]).read_bytes(), words[0], "exec"), space)


if __name__ == "__main__":
    main(*sys.argv[1:])
