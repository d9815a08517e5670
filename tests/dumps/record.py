"""Record the gloo cases: run small programs under torchrun and store their dumps.

`python -m tests.dumps.record` replaces the folders `tests/dumps/cases/gloo_*`. In the stored pickles, the
names of folders are replaced, and nothing else is changed. In each program, a thread writes the dump of its
rank after some seconds, as a watchdog would, and ends the process.
"""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from helpers.dumps.plain_pickle import load_plain

CASES = Path(__file__).with_name("cases")
DEADLINE_S = 120
PRELUDE = """\
import faulthandler, os, threading, time
import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

OUT, RANK = os.environ["OUT"], int(os.environ["RANK"])


def write_dump():
    time.sleep(4)
    if RANK not in SILENT:
        with open(f"{OUT}/dump_rank_{RANK}", "wb") as file:
            file.write(c10d._dump_fr_trace(True, True, False))
    if STACKS:
        with open(f"{OUT}/rank{RANK}.txt", "w") as file:
            faulthandler.dump_traceback(file, all_threads=True)
    time.sleep(12)
    os._exit(0)


SILENT, STACKS = {silent}, {stacks}
dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
threading.Thread(target=write_dump, daemon=True).start()
x = torch.ones(3)
"""
PROGRAMS: dict[str, str] = {
    "gloo_healthy": """\
for step in range(3):
    dist.all_reduce(x)
    dist.broadcast(x, src=1)
time.sleep(60)
""",
    "gloo_missing_call": """\
dist.all_reduce(x)
dist.broadcast(x, src=0)
if rank != 2:
    dist.all_reduce(torch.ones(5))
time.sleep(60)
""",
    "gloo_different_ops": """\
dist.all_reduce(x)
if rank == 0:
    dist.broadcast(x, src=0)
    dist.all_reduce(x)
else:
    dist.all_reduce(x)
    dist.broadcast(x, src=0)
time.sleep(60)
""",
    "gloo_fewer_batches": """\
batches = 3 if rank == 1 else 5
for step in range(batches):
    dist.all_reduce(x)
dist.barrier()
time.sleep(60)
""",
    "gloo_group_order": """\
pair, all_ranks = dist.new_group([0, 1]), dist.new_group([0, 1, 2])
dist.all_reduce(x, group=pair) if rank < 2 else None
dist.all_reduce(x, group=all_ranks)
if rank == 0:
    dist.all_reduce(x, group=pair)
    dist.all_reduce(x, group=all_ranks)
else:
    dist.all_reduce(x, group=all_ranks)
    dist.all_reduce(x, group=pair)
time.sleep(60)
""",
    "gloo_recv_with_stacks": """\
dist.all_reduce(x)
if rank == 2:
    dist.recv(x, src=0)
dist.all_reduce(x)
time.sleep(60)
""",
    "gloo_no_dump": """\
dist.all_reduce(x)
if rank == 1:
    time.sleep(60)
dist.all_reduce(x)
""",
}


def record(name: str, program: str) -> None:
    """Run a program on three ranks, and store its files as a case."""
    silent, stacks = {1} if "no_dump" in name else set(), "stacks" in name
    prelude = PRELUDE.replace("{silent}", repr(silent)).replace("{stacks}", repr(stacks))
    with tempfile.TemporaryDirectory() as folder:
        script, out = Path(folder) / "train.py", Path(folder) / "out"
        out.mkdir()
        script.write_text(prelude + program)
        torchrun = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node=3",
        ]
        subprocess.run(
            [*torchrun, str(script)],
            env={**os.environ, "OUT": str(out), "OMP_NUM_THREADS": "1"},
            timeout=DEADLINE_S,
            capture_output=True,
        )
        target = CASES / name
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for path in sorted(out.iterdir()):
            if path.suffix == ".txt":
                (target / path.name).write_text(_rename(path.read_text(), folder))
            else:
                dump = _rename_all(load_plain(path.read_bytes()), folder)
                (target / path.name).write_bytes(pickle.dumps(dump, protocol=2))
    print(name, *sorted(path.name for path in target.iterdir()))


def _rename(text: str, folder: str) -> str:
    """Replace the folders of this machine in a text."""
    import torch

    packages = str(Path(torch.__file__).parents[1])
    library = str(Path(os.__file__).parent)
    for old, new in (
        (packages, "/env/lib/python3.11/site-packages"),
        (library, "/env/lib/python3.11"),
    ):
        text = text.replace(old, new)
    return text.replace(os.path.realpath(folder), "/job").replace(folder, "/job")


def _rename_all(value: Any, folder: str) -> Any:
    if isinstance(value, dict):
        return {key: _rename_all(item, folder) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_rename_all(item, folder) for item in value)
    return _rename(value, folder) if isinstance(value, str) else value


if __name__ == "__main__":
    for case in sys.argv[1:] or PROGRAMS:
        record(case, PROGRAMS[case])
