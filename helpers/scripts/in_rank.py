"""Run a script in a rank like a worker of torchrun: as `__main__`, from its beginning to its exit.

There are two differences from a separate process. The rank was forked, so its modules may already be
imported. And after running the exit handlers, the rank waits until it is terminated, so that the hang of a
rank that still needs it can be explained.
"""

from __future__ import annotations

import builtins
import gc
import importlib
import io
import os
import sys
import threading
import types
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

from helpers.ranks.new_process import join_threads, run_exit_handlers
from helpers.scripts import own_helpers, own_processes, own_spawn
from helpers.scripts.step_records import StopAfterSteps
from helpers.trace.frames import is_course_code

if TYPE_CHECKING:
    from helpers.scripts.step_watch import StepWatch

THREADS_VARIABLE = "OMP_NUM_THREADS"


def run_as_main(
    rank: int,
    world_size: int,
    path: str,
    argv: Sequence[str],
    source: bytes,
    related: bytes,
    threads: int,
    check_folder: str = "",
    check_steps: int = 0,
    module_name: str = "",
) -> None:
    """Run a script as `__main__`. Every rank calls this.

    Args:
        rank, world_size: The usual arguments of a launched function.
        path: The script's absolute path.
        argv: The script's `sys.argv`.
        source: The script's text.
        related: The source texts of modules in the script's folder, which the engine searches for modules to
            be imported.
        threads: The number of threads per operation; 0 for torch's default.
        check_folder: The folder for the records of a check for silent faults; "" for no check.
        check_steps: The number of optimizer steps after which to stop.
        module_name: The name of a module to run as with `python -m`; "" for a script.
    """
    del related
    _set_threads(threads)
    code = compile(source, path, "exec", dont_inherit=True)
    module = _make_main(path, module_name)
    sys.argv[:] = argv
    folder = Path.cwd() if module_name else Path(os.path.realpath(path)).parent
    sys.path.insert(0, str(folder))
    own_helpers.install(folder)
    own_spawn.install(rank, world_size, Path(argv[0]).name)
    processes = own_processes.OwnProcesses(rank, world_size, Path(argv[0]).name)
    processes.install()
    watch = _start_check(rank, check_folder, check_steps)
    pid = os.getpid()
    try:
        try:
            if package := module_name.rpartition(".")[0]:
                importlib.import_module(package)
            exec(code, module.__dict__)
            processes.finish()
        finally:
            if watch is not None and os.getpid() == pid:
                watch.finish(stopped=False)
        _end_process()
    except SystemExit as ending:
        _end_process()
        if ending.code in (None, 0):
            return
        if not isinstance(ending.code, int):
            print(ending.code, file=sys.stderr)
        raise
    except own_spawn.StartsProcesses:
        raise
    except StopAfterSteps:
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException as error:
        if os.getpid() == pid:  # the engine prints a forked child's error
            _print_error(error)
            _end_process()
        raise


def _start_check(rank: int, folder: str, steps: int) -> StepWatch | None:
    """Start recording the script's steps if it is checked."""
    if not folder:
        return None
    from helpers.scripts.step_records import Writer
    from helpers.scripts.step_watch import StepWatch

    watch = StepWatch(Writer(folder, rank), steps)
    watch.install()
    return watch


def _make_main(path: str, name: str) -> types.ModuleType:
    """Return a new module `__main__`, with Python's names for a script or for the module `name`."""
    module = types.ModuleType("__main__")
    names = {"__file__": path, "__builtins__": builtins, "__cached__": None, "__annotations__": {}}
    module.__dict__.update(names)
    if name:
        module.__package__ = name.rpartition(".")[0]
        module.__spec__ = spec_from_file_location(name, path)
    with suppress(AttributeError):
        del vars(builtins)["display"]  # the engine adds it for a notebook's functions
    sys.modules["__main__"] = module
    return module


def _set_threads(threads: int) -> None:
    """Use as many threads as a worker of torchrun."""
    import torch

    if threads:
        os.environ[THREADS_VARIABLE] = str(threads)
    else:
        os.environ.pop(THREADS_VARIABLE, None)
    torch.set_num_threads(threads or os.cpu_count() or 1)


def _print_error(error: BaseException) -> None:
    """Print an error as Python does, beginning with the script's first frame."""
    trace = error.__traceback__
    while trace is not None and is_course_code(trace.tb_frame.f_code):
        trace = trace.tb_next
    with suppress(Exception):
        sys.excepthook(type(error), error.with_traceback(trace), trace)


def _end_process() -> None:
    """Finish like a Python process: wait for threads, run exit handlers, and flush open files."""
    join_threads()
    run_exit_handlers()
    threading.excepthook = threading.__excepthook__
    for value in gc.get_objects():
        with suppress(Exception):
            if isinstance(value, io.BufferedWriter | io.TextIOWrapper):
                value.flush()
    sys.stdout.flush()
    sys.stderr.flush()
