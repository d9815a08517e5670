"""What runs around the answers of notebook 14: agents, workers, planted failures.

The first function of each pair is called in the one rank that starts the script, the second in the
script's workers.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from helpers.checks.scripts import (
    Source,
    compose,
    endings_of,
    error_file,
    report,
    run_under_torchrun,
    under_fork,
    under_torchrun,
)
from helpers.jobs.owned import Owned
from helpers.jobs.ports import held_port
from helpers.jobs.torchrun_command import environment_of

_HERE = "helpers.exercises.torchrun_programmes"
_ROOT = str(Path(__file__).parents[2])
AGENTS_S = 40.0
"""How long real agents may take: 2 to 5 s are usual, but thirty learners may share the machine."""
NAMES = (
    "RANK",
    "LOCAL_RANK",
    "GROUP_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "GROUP_WORLD_SIZE",
    "TORCHELASTIC_RESTART_COUNT",
)


def read_env(
    answer: Source, rank: int, world_size: int, places: Sequence[Mapping[str, str]] | None
) -> dict[str, Any]:
    """Call the answer in each of these environments, or, without any, in real workers."""
    if places is None:
        script = compose(answer, f"{_HERE}:call", ())
        return under_torchrun(script, 2, timeout_s=AGENTS_S)
    function = answer.build()
    values = []
    for place in places:
        for name in NAMES:
            os.environ.pop(name, None)
        os.environ.update(place)
        values.append(function())
    return {"values": values}


def call(answer: Callable[[], Any]) -> Any:
    """Call the answer in a worker."""
    return answer()


def two_nodes(
    answer: Source, rank: int, world_size: int, nproc: int, address: str, port: int
) -> dict[str, Any]:
    """Ask for the two commands and read them as torchrun would; start them where no port is given."""
    if not port:
        return _two_real_nodes(answer, nproc)
    script = "train.py"
    commands = answer.build()(script, nproc, address, port)
    read = [_as_torchrun_reads(command) for command in _list(commands)]
    return {"values": [{"commands": _plain(commands), "read": read}]}


def _two_real_nodes(answer: Source, nproc: int) -> dict[str, Any]:
    """Give the answer's two commands to two agents on this machine."""
    script = compose(answer, f"{_HERE}:where_am_i", ())
    with held_port() as port, Owned() as owned:
        commands = answer.build()(str(script), nproc, "127.0.0.1", port)
        env = environment_of({"PYTHONPATH": _ROOT}, owned.folder)
        for node, words in enumerate(commands):
            argv = [sys.executable, "-m", "torch.distributed.run", *words[1:]]
            owned.start(f"node{node}", argv, env=env, cwd=script.parent)
        late = not owned.wait(AGENTS_S)
        exits = {} if late else dict(enumerate(owned.exits.values()))
        endings = {"late": late, "exits": exits}
        return report(script.parent, 2 * nproc, endings, [""] * (2 * nproc))


def _as_torchrun_reads(command: Any) -> dict[str, Any]:
    """Parse one command with torchrun's own parser; `problem` says why it cannot be."""
    if not isinstance(command, (list, tuple)) or not all(isinstance(word, str) for word in command):
        return {"problem": "not a list of strings"}
    if not command or command[0] != "torchrun":
        return {"problem": "its first word is not 'torchrun'"}
    from contextlib import redirect_stderr
    from io import StringIO

    from torch.distributed.run import get_args_parser

    said = StringIO()
    try:
        with redirect_stderr(said):
            found = get_args_parser().parse_args(list(command[1:]))
    except SystemExit:
        return {"problem": f"torchrun says: {' '.join(said.getvalue().strip().splitlines()[-1:])}"}
    wanted = ("nnodes", "nproc_per_node", "node_rank", "master_addr", "master_port")
    more = ("rdzv_backend", "rdzv_endpoint", "standalone", "training_script")
    return {name: getattr(found, name) for name in (*wanted, *more)}


def where_am_i(answer: object) -> dict[str, Any]:
    """Join the group in a worker; say where this is, and what all ranks add up to."""
    dist.init_process_group("gloo")
    total = torch.tensor(dist.get_rank())
    dist.all_reduce(total)
    found = {name: int(os.environ[name]) for name in ("RANK", "LOCAL_RANK", "GROUP_RANK")}
    dist.destroy_process_group()
    return {**found, "sum of ranks": int(total)}


def failing(
    answer: Source, rank: int, world_size: int, nproc: int, bad: int, text: str, real: bool
) -> dict[str, Any]:
    """Let workers run a main function by the answer; that of rank `bad` raises."""
    script = compose(answer, f"{_HERE}:run_main", (bad, text))
    if real:
        # the agent itself reads the error file: what counts is what it reports of it
        found, run = _real_failure(script, nproc)
    else:
        found, run = under_fork(script, nproc), {}
    for r, error in enumerate(found["errors"]):
        if error is not None and error["message"] == text and r == bad:
            found["errors"][r] = None  # the planted one, which is meant to come through
    values = []
    for r in range(nproc):
        raised = _read_error(error_file(script, r)) if not real else run.get(r, "")
        values.append(
            {
                "exit code": int(found["exits"].get(r, 0) != 0),
                "error file": raised,
                "calls of main": len(list(script.parent.glob(f"called-{r}-*"))),
            }
        )
    planted = dict.fromkeys(found["exits"], 0)
    clean = any(found["errors"])
    return {**found, "values": values, "exits": found["exits"] if clean else planted}


def _real_failure(script: Path, nproc: int) -> tuple[dict[str, Any], dict[int, str]]:
    run = run_under_torchrun(script, nproc, timeout_s=AGENTS_S)
    found = report(script.parent, nproc, endings_of(run), run.output)
    return found, {worker.rank: worker.error for worker in run.workers}


def run_main(answer: Callable[[Callable[[], None]], Any], bad: int, text: str) -> None:
    """Hand the answer a main function which raises on rank `bad`."""
    rank = int(os.environ["RANK"])

    def main() -> None:
        Path(tempfile.mkstemp(prefix=f"called-{rank}-", dir=Path(sys.argv[0]).parent)[1])
        if rank == bad:
            raise ValueError(text)

    answer(main)


def _read_error(path: Path) -> str:
    try:
        message = json.loads(path.read_text())["message"]
        return str(message if isinstance(message, str) else message["message"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []


def _plain(value: Any) -> Any:
    """Give what the answer returned, in types that can travel."""
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return value if isinstance(value, (str, int, float, type(None))) else repr(value)[:200]
