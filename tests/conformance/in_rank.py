"""Join the group, call main, and record its outcome, inside a plain rank. Only imported by plain scripts.

Each rank writes separate files into the folder given by the environment: `began-R` when main begins,
`end-R` when it ends, and `output-R`, which receives both of its streams.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = "CONFORMANCE_FOLDER"


def spawn(main: Callable[..., Any], world_size: int, init: bool) -> None:
    """Start the ranks like a script, wait for them, and record the outcome of the whole job."""
    import torch.multiprocessing as mp
    from torch.multiprocessing.spawn import ProcessExitedException

    context = mp.spawn(spawned, args=(main, world_size, init), nprocs=world_size, join=False)
    job: dict[str, Any] = {}
    try:
        while not context.join():
            pass
    except ProcessExitedException as error:
        job = {"rank": error.error_index, "signal": error.signal_name, "exit": error.exit_code}
    except Exception:
        pass  # a rank has raised an error and recorded it
    _write("job", job)


def spawned(rank: int, main: Callable[..., Any], world_size: int, init: bool) -> None:
    """Be one rank of `spawn`."""
    _take_output(rank)
    if init:
        import torch.distributed as dist

        dist.init_process_group("gloo", rank=rank, world_size=world_size)
    _run(main, rank, world_size)


def torchrun_worker(main: Callable[..., Any], init: bool) -> None:
    """Be one rank of a torchrun job."""
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    _take_output(rank)
    if init:
        import torch.distributed as dist

        dist.init_process_group("gloo")
    _run(main, rank, world_size)


def spawn_script_ranks(main: Callable[..., Any], world_size: int, init: bool) -> None:
    """Start the ranks as scripts do. Under `course run`, its ranks take their place."""
    import torch.multiprocessing as mp

    mp.spawn(spawned_script_rank, args=(main, world_size, init), nprocs=world_size)


def spawned_script_rank(rank: int, main: Callable[..., Any], world_size: int, init: bool) -> None:
    """Be one rank of `spawn_script_ranks`."""
    script_rank(main, world_size, init)


def script_rank(main: Callable[..., Any], world_size: int, init: bool) -> None:
    """Be one rank of a script under `course run`, which records its output and its errors."""
    if init:
        import torch.distributed as dist

        dist.init_process_group("gloo")
    _run(main, int(os.environ["RANK"]), world_size)


def read_value(folder: Path, rank: int) -> str:
    """Return the value of a rank's main, as text: "None" if the rank exited with success before returning."""
    file = folder / f"end-{rank}"
    end = json.loads(file.read_text()) if file.exists() else {}
    return str(end.get("value", None))


def _run(main: Callable[..., Any], rank: int, world_size: int) -> None:
    from tests.conformance.outcome import text_of

    _write(f"began-{rank}", {})
    own = os.getpid()
    try:
        value = main(rank, world_size)
        end = {"value": text_of(value)}
    except BaseException as error:
        if os.getpid() == own:
            _write(f"end-{rank}", _error(error))
        raise
    # A child forked by the program has returned to this code, but it is not the rank
    if os.getpid() != own:
        return
    _write(f"end-{rank}", end)
    _leave_group()


def _leave_group() -> None:
    """Leave the group, as every script should. Otherwise a rank may abort at its end, failing the job."""
    import torch.distributed as dist

    if dist.is_initialized():
        dist.destroy_process_group()


def _error(error: BaseException) -> dict[str, Any]:
    try:
        message = str(error).split("\n", 1)[0]
    except Exception:
        message = "(its message could not be read)"
    return {"error": type(error).__name__, "message": message, "when_ns": time.monotonic_ns()}


def _take_output(rank: int) -> None:
    """Redirect both streams to a file of this rank, and flush each line, as to a terminal."""
    output = os.open(_folder() / f"output-{rank}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    sys.stdout.flush()
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]


def _write(name: str, data: dict[str, Any]) -> None:
    """Write a file that is complete as soon as it exists."""
    half = _folder() / f"half-{name}-{os.getpid()}"
    half.write_text(json.dumps(data))
    half.rename(_folder() / name)


def _folder() -> Path:
    return Path(os.environ[FOLDER])
