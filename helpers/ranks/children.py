"""Processes that a learner's function starts inside a rank, by fork or by spawn.

Under torchrun both belong to an ordinary script: a forked child runs the script to its end and exits, a
spawned one imports the script again to find what is pickled by name. A rank has no script, so both need
help here. Called by `worker`; nothing of this runs in the launcher.
"""

from __future__ import annotations

import atexit
import multiprocessing.process
import multiprocessing.spawn
import os
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

from helpers.trace.frames import LEARNER, kind_of

_MAIN = """\
import pickle

with open({path!r}, "rb") as file:
    globals().update(pickle.load(file))
"""


def let_spawned_children_find_main(folder: Path) -> None:
    """Give `multiprocessing` a file from which a spawned child imports this rank's `__main__`.

    The file is written when a child is spawned: what `__main__` holds by then is what the child can need.
    Only code of this rank's own learner is pickled, and only a child of this rank reads it.
    """
    vars(multiprocessing.process)["ORIGINAL_DIR"] = (
        os.getcwd()
    )  # where the child begins; not the server's
    plain = multiprocessing.spawn.get_preparation_data

    def with_main(name: str) -> dict[str, Any]:
        data = plain(name)
        if not data.keys() & {"init_main_from_name", "init_main_from_path"}:
            data["init_main_from_path"] = str(_main_as_file(folder))
        return data

    multiprocessing.spawn.get_preparation_data = with_main


def _main_as_file(folder: Path) -> Path:
    names = {
        name: value
        for name, value in vars(sys.modules["__main__"]).items()
        if not name.startswith("__")
    }
    pickled, script = folder / "main.pickle", folder / "main.py"
    pickled.write_bytes(_pickled(names))
    script.write_text(_MAIN.format(path=str(pickled)))
    return script


def _pickled(names: Mapping[str, Any]) -> bytes:
    from helpers.ranks.sending import dumps

    try:
        return dumps(names)[0]
    except Exception:  # pickling runs the learner's own code, which may raise anything
        return dumps({name: value for name, value in names.items() if _can_be_pickled(value)})[0]


def _can_be_pickled(value: object) -> bool:
    from helpers.ranks.sending import dumps

    try:
        dumps(value)
    except Exception:
        return False
    return True


def end_forked_child(error: BaseException | None) -> NoReturn:
    """End a child of `os.fork()` as Python ends a script: 0 after a return, 1 and a traceback after an error.

    Without this the child would go back to the rank's loop, and wait forever for a task.
    """
    code = 0
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
    elif error is not None:
        traceback.print_exception(error.with_traceback(_from_the_learner(error.__traceback__)))
        code = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code & 0xFF)


def _from_the_learner(trace: TracebackType | None) -> TracebackType | None:
    """Cut off the frames of the machinery that called the learner's code."""
    while trace is not None and kind_of(trace.tb_frame.f_code) is not LEARNER:
        trace = trace.tb_next
    return trace
