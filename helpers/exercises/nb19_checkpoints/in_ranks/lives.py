"""The lives of a job that is killed and started again: how they meet, and what each leaves for the judge.

Called by the programmes of 19.1, 19.3 and 19.4, in the workers that `under_fork` starts (`leave`) and in
the rank that starts them (`with_lives`).
"""

from __future__ import annotations

import json
import os
import sys
import threading
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch.distributed as dist
from torch._C._distributed_c10d import FileStore

from helpers.checks.scripts import under_fork

WITHIN_S = 6.0
"""What all lives of a job together may take; a right answer needs half a second."""


def life() -> int:
    """Give the number of this life, from 0 on."""
    return int(os.environ["TORCHELASTIC_RESTART_COUNT"])


def here() -> Path:
    """Give the folder of the script; what the judge reads lies beside the checkpoints, not among them."""
    return Path(sys.argv[0]).resolve().parent


def checkpoints(script_folder: Path) -> Path:
    """Return the folder for checkpoints, which all attempts share."""
    folder = script_folder / "checkpoints"
    folder.mkdir(exist_ok=True)
    return folder


def run_attempts(script: Path, sizes: Sequence[int]) -> dict[str, Any]:
    """Run a job of these sizes, one attempt after the other; return its report and what each attempt left."""
    watched = checkpoints(script.parent)
    return with_lives(under_fork(script, sizes, timeout_s=WITHIN_S, watched=watched), script, sizes)


def meet() -> None:
    """Join the group of this life. A file is met at once; a store over TCP may take 0.3 s."""
    join(here() / f"meeting {life()}", int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))


def join(file: Path, rank: int, size: int) -> None:
    """Join a group whose ranks meet at a file."""
    store = FileStore(str(file), size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size)


def leave(what: str, value: Any) -> None:
    """Leave something of this attempt for the judge; a kill comes before it or after it, never half-way."""
    unfinished = here() / f"unfinished {life()} {what} {threading.get_ident()}"
    unfinished.write_text(json.dumps(value))
    unfinished.replace(here() / f"life {life()} {what}")


def whole_files(folder: Path) -> dict[str, list[str]]:
    """Give all files that a life finds, and the whole ones: torch.save writes a zip's directory last."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    whole = [path.name for path in files if zipfile.is_zipfile(path)]
    return {"files": [path.name for path in files], "whole": whole}


def with_lives(found: dict[str, Any], script: Path, sizes: Sequence[int]) -> dict[str, Any]:
    """Add to each rank's value, and to a run without values, what the attempts have left: a dict for each.

    "killed" and "changed" come from the process that started the workers.
    """
    lives: list[dict[str, Any]] = [{} for _ in sizes]
    for path in script.parent.glob("life *"):
        _, number, what = path.name.split(" ", 2)
        lives[int(number)][what] = json.loads(path.read_text())
    last = max((k for k, left in enumerate(lives) if left), default=0)
    told = {
        "lives": lives[: last + 1],
        "killed": found["killed"],
        "changed": found["changed"],
    }
    values = found["values"]
    if any(isinstance(value, dict) for value in values):
        found["values"] = [value | told if isinstance(value, dict) else value for value in values]
    else:
        found["values"] = [told] * len(values)
    return found
