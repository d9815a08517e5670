"""Make a forked rank and its child processes begin and end like new processes under torchrun.

`worker` calls this module in the rank. A fork copies the server's random states, exit handlers and
`__main__`. A rank also has no script: a forked child would continue in the rank's loop, and a spawned child
would import the server's script.
"""

from __future__ import annotations

import atexit
import builtins
import multiprocessing.process
import multiprocessing.spawn
import os
import random
import sys
import tempfile
import threading
import traceback
import types
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from helpers.trace.frames import LEARNER, code_kind


def reset_main() -> dict[str, Any]:
    """Replace the server's `__main__` with an empty module, as in a new interpreter. Return its names."""
    module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = builtins
    vars(builtins)["display"] = print_objects
    sys.modules["__main__"] = module
    return module.__dict__


def print_objects(*objects: Any, **_: Any) -> None:
    """Print objects, as IPython's `display` does outside a notebook.

    In a notebook `display` is a builtin, so functions and cells use it without an import.
    """
    print(*objects)


def set_temp_folder(folder: str) -> None:
    """Use `folder` for temporary files. If it is "", use the launcher's folder, as torchrun does.

    Files in the launcher's folder are visible to all ranks and to the next launch, because notebooks save
    files in one cell and load them in another.
    """
    if folder:
        Path(folder).mkdir(exist_ok=True)
        os.environ["TMPDIR"] = folder
    # Make Python look for the folder again, because TMPDIR may differ from the server's.
    tempfile.tempdir = None


def seed_from_system() -> None:
    """Seed all random states from the system, because the fork copied the server's states.

    New processes do the same: under torchrun and mp.spawn, torch.initial_seed(), random and numpy's global
    state differ from rank to rank and from run to run (measured with torch 2.13). One difference remains:
    hash() of a string is the same on all forked ranks, because existing strings cache their hash. Among new
    processes it differs.
    """
    import torch

    torch.default_generator.seed()
    random.seed()
    if "numpy.random" in sys.modules:  # Otherwise numpy seeds its state when first imported.
        sys.modules["numpy.random"].seed()


_dropped_registries: list[object] = []


def drop_server_finalizers() -> None:
    """Drop the server's exit handlers and finalizers, so that the rank does not run them."""
    atexit._clear()
    if (logging := sys.modules.get("logging")) is not None:  # Also registered in a new process.
        atexit.register(logging.shutdown)
    if (util := sys.modules.get("multiprocessing.util")) is not None:
        atexit.register(util._exit_function)
    # Keep the old registry, because freeing it would copy each memory page that holds one of its entries.
    finalize: Any = weakref.finalize
    _dropped_registries.append(finalize._registry)
    finalize._registry = {}


def join_threads() -> None:
    """Wait for non-daemon threads, as Python does when its main program has ended."""
    for call in reversed(getattr(threading, "_threading_atexits", ())):
        call()  # The threads of a pool wait until this callback tells them to exit.
    threading.__dict__.get("_threading_atexits", []).clear()
    current = threading.current_thread()
    while remaining := [
        thread for thread in threading.enumerate() if thread is not current and not thread.daemon
    ]:
        remaining[0].join()


def run_exit_handlers() -> None:
    """Run the exit handlers of the learner's code. The rank itself is killed later."""
    atexit._run_exitfuncs()
    for finalizer in list(vars(weakref.finalize)["_registry"]):
        if finalizer.atexit:
            finalizer()


@contextmanager
def catch_clean_exit() -> Iterator[None]:
    """Treat sys.exit() and sys.exit(0) as a return without a value, because both exit with code 0."""
    try:
        yield
    except SystemExit as exit_error:
        if exit_error.code not in (None, 0):
            raise
        join_threads()


_MAIN_TEMPLATE = """\
import pickle

with open({path!r}, "rb") as file:
    globals().update(pickle.load(file))
"""


def export_main_on_spawn(folder: Path) -> None:
    """Write a file from which children spawned by `multiprocessing` import this rank's `__main__`.

    The file is written when a child is spawned, so it contains all names that are in `__main__` by then. It
    is safe to pickle: the code is that of this rank's learner, and only a child of this rank reads the file.
    """
    vars(multiprocessing.process)["ORIGINAL_DIR"] = (
        os.getcwd()
    )  # The child starts in this rank's folder, not in the server's folder.
    original = multiprocessing.spawn.get_preparation_data

    def preparation_data(name: str) -> dict[str, Any]:
        data = original(name)
        if not data.keys() & {"init_main_from_name", "init_main_from_path"}:
            data["init_main_from_path"] = str(_write_main(folder))
        return data

    multiprocessing.spawn.get_preparation_data = preparation_data


def _write_main(folder: Path) -> Path:
    names = {
        name: value
        for name, value in vars(sys.modules["__main__"]).items()
        if not name.startswith("__")
    }
    pickle_path, script_path = folder / "main.pickle", folder / "main.py"
    pickle_path.write_bytes(_pickle_names(names))
    script_path.write_text(_MAIN_TEMPLATE.format(path=str(pickle_path)), encoding="utf-8")
    return script_path


def _pickle_names(names: Mapping[str, Any]) -> bytes:
    from helpers.ranks.sending import dumps

    try:
        return dumps(names)[0]
    except Exception:  # Pickling runs the learner's code, which may raise anything.
        return dumps({name: value for name, value in names.items() if _is_picklable(value)})[0]


def _is_picklable(value: object) -> bool:
    from helpers.ranks.sending import dumps

    try:
        dumps(value)
    except Exception:
        return False
    return True


def end_forked_child(error: BaseException | None) -> NoReturn:
    """End a child of `os.fork()` like a script: with exit code 0, or with 1 and a traceback after an error.

    Otherwise the child would return to the rank's loop, where it would wait forever for a task.
    """
    code = 0
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
    elif error is not None:
        traceback.print_exception(error.with_traceback(_skip_course_frames(error.__traceback__)))
        code = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code & 0xFF)


def _skip_course_frames(trace: types.TracebackType | None) -> types.TracebackType | None:
    """Return a traceback without the course's frames that called the learner's code."""
    while trace is not None and code_kind(trace.tb_frame.f_code) is not LEARNER:
        trace = trace.tb_next
    return trace
