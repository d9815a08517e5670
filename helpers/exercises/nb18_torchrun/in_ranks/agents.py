"""18.1 and 18.2: run answers with agents, workers, and planted failures."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from helpers.checks.scripts import (
    ROOT,
    Source,
    compose,
    error_file,
    report,
    report_of,
    run_under_torchrun,
    run_with_forked_workers,
)
from helpers.jobs.owned import OwnedPrograms
from helpers.jobs.ports import held_port
from helpers.jobs.torchrun import agent_environment

AGENTS_S = 40.0
"""Time limit for real agents. They usually need 2 to 5 s, but thirty learners might share the machine."""
PATIENCE_S = 5.0


def run_two_nodes(
    answer: Source, rank: int, world_size: int, script: str, nproc: int, address: str, port: int
) -> dict[str, Any]:
    """Get the two commands and parse them as torchrun does. If `port` is 0, run them with real agents."""
    if not port:
        return _run_real_agents(answer, nproc)
    commands = answer.build()(script, nproc, address, port)
    read = [_parse_command(words) for words in _as_list(commands)]
    return {"values": [{"commands": _as_sendable(commands), "read": read}]}


def _run_real_agents(answer: Source, nproc: int) -> dict[str, Any]:
    """Run the answer's two commands as two agents on this machine."""
    script = compose(answer, report_place, ())
    with held_port() as port, OwnedPrograms() as owned:
        commands = answer.build()(str(script), nproc, "127.0.0.1", port)
        env = agent_environment({"PYTHONPATH": ROOT}, owned.folder)
        for node, words in enumerate(commands):
            argv = [sys.executable, "-m", "torch.distributed.run", *words[1:]]
            owned.start(f"node{node}", argv, env=env, cwd=script.parent)
        late = not owned.wait(AGENTS_S)
        exits = {} if late else dict(enumerate(owned.exits.values()))
        endings = {"late": late, "exits": exits}
        return report(script.parent, 2 * nproc, endings, [""] * (2 * nproc))


def _parse_command(words: Any) -> dict[str, Any]:
    """Parse one command with torchrun's parser; `problem` explains why a command cannot be parsed."""
    if not isinstance(words, (list, tuple)) or not all(isinstance(word, str) for word in words):
        return {"problem": "not a list of strings"}
    if not words or words[0] != "torchrun":
        return {"problem": "its first word is not 'torchrun'"}
    from torch.distributed.run import get_args_parser

    said = StringIO()
    try:
        with redirect_stderr(said):
            found = get_args_parser().parse_args(list(words[1:]))
    except SystemExit:
        return {"problem": f"torchrun says: {' '.join(said.getvalue().strip().splitlines()[-1:])}"}
    return {name: _as_sendable(value) for name, value in vars(found).items()}


def report_place(answer: object) -> dict[str, Any]:
    """Join the group in a worker; return the worker's place, and the sum of all ranks."""
    dist.init_process_group("gloo")
    total = torch.tensor(dist.get_rank())
    dist.all_reduce(total)
    found = {name: int(os.environ[name]) for name in ("RANK", "LOCAL_RANK", "GROUP_RANK")}
    dist.destroy_process_group()
    return {**found, "sum of ranks": int(total)}


ERRORS: dict[str, Callable[[str], Exception]] = {
    error.__name__: error for error in (ValueError, KeyError, RuntimeError, FileNotFoundError)
}
"""{name: exception} for the exceptions that main may raise."""


def run_failing_main(
    answer: Source,
    rank: int,
    world_size: int,
    worker_count: int,
    failing_ranks: Sequence[int],
    kind: str,
    text: str,
    use_torchrun: bool,
) -> dict[str, Any]:
    """Call the answer in workers with a main function that raises on the ranks in `failing_ranks`."""
    script = compose(answer, run_main, (list(failing_ranks), kind, text))
    if use_torchrun:
        # the agent reads the error file, so only its report counts
        run = run_under_torchrun(script, worker_count, timeout_s=AGENTS_S)
        found = report_of(run, script, worker_count)
        told = {worker.rank: worker.error for worker in run.workers}
    else:
        found = run_with_forked_workers(script, worker_count, grace_s=5.0)
        told = {r: _read_error(error_file(script, r)) for r in range(worker_count)}
    planted = str(ERRORS[kind](text))
    for r, error in enumerate(found["errors"]):
        if (
            error is not None
            and r in failing_ranks
            and (error["kind"], error["message"]) == (kind, planted)
        ):
            found["errors"][r] = None  # the check raised this error
    values = [
        {
            "calls of main": len(list(script.parent.glob(f"called-{r}-*"))),
            "exit code": int(found["exits"].get(r, 0) != 0),
            "exception": _check_exception_left(script.parent, r) if r in failing_ranks else "",
            "error file": told.get(r, ""),
            "other files": _describe_other_files(script.parent / f"{r}"),
        }
        for r in range(worker_count)
    ]
    if not any(found["errors"]):
        found["exits"] = {}
    return {**found, "values": values}


def run_main(
    answer: Callable[[Callable[[], None]], Any], failing_ranks: Sequence[int], kind: str, text: str
) -> None:
    """Pass the answer a main function that raises on the ranks in `failing_ranks`."""
    rank, folder = int(os.environ["RANK"]), Path(sys.argv[0]).parent
    # Relative paths of other files written by the answer refer to this folder
    own = folder / str(rank)
    own.mkdir(exist_ok=True)
    os.chdir(own)
    tempfile.tempdir = str(own)

    def main() -> None:
        tempfile.mkstemp(prefix=f"called-{rank}-", dir=folder)
        if rank in failing_ranks:
            _wait_for_all_ranks(folder)  # an agent terminates the others as soon as one has failed
            raise ERRORS[kind](text)

    try:
        answer(main)
    except BaseException:
        (folder / f"raised-{rank}").touch()
        raise


def _check_exception_left(folder: Path, rank: int) -> str:
    """Return "", or a message saying that main's exception never left the answer.

    After `os._exit`, only a file can show this.
    """
    return "" if (folder / f"raised-{rank}").exists() else "it never left your function"


def _describe_other_files(folder: Path) -> str:
    names = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    return f"writes other files: {', '.join(names)}" if names else ""


def _wait_for_all_ranks(folder: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    names = [f"called-{rank}-*" for rank in range(int(os.environ["WORLD_SIZE"]))]
    while not all(any(folder.glob(name)) for name in names) and time.monotonic() < deadline:
        time.sleep(0.01)


def _read_error(path: Path) -> str:
    try:
        message = json.loads(path.read_text(encoding="utf-8"))["message"]
        return str(message if isinstance(message, str) else message["message"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []


def _as_sendable(value: Any) -> Any:
    """Convert a value to types that a rank can send."""
    if isinstance(value, (list, tuple)):
        return [_as_sendable(part) for part in value]
    return value if isinstance(value, (str, int, float, type(None))) else repr(value)[:200]
