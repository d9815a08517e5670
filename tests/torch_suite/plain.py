"""Run torch's tests in processes forked from a plain interpreter, without the engine.

`python -m tests.torch_suite.plain SUITE list` prints names and numbers of ranks as JSON;
`python -m tests.torch_suite.plain SUITE NAME ...` prints how each test ended, a line of JSON each.
"""

from __future__ import annotations

import json
import multiprocessing as mp
import os
import sys
import time
from pathlib import Path

import torch

from tests.torch_suite import cases
from tests.torch_suite.run_folder import DEADLINE_S, folder_of_a_run

# The other ranks' actions after a failure add no information.
GRACE_S = 3.0
FORK = mp.get_context("fork")


def _rank(rank: int, world_size: int, suite: str, name: str, folder: str) -> None:
    said = os.open(f"{folder}/said", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(said, 1)
    os.dup2(said, 2)
    torch.set_num_threads(1)
    try:
        ended = cases.run(rank, world_size, suite, name, folder, joins=True)
    except BaseException as error:
        ended = type(error).__name__
    part = Path(f"{folder}/ended-{rank}.part")
    part.write_text(ended)
    part.rename(f"{folder}/ended-{rank}")
    os._exit(ended not in {cases.PASSED, cases.SKIPPED})


def ends(suite: str, name: str) -> list[str]:
    """Run one test; return how each rank ended: "passed", "skipped", its kind of error, or "nothing"."""
    size = cases.world_size_of(suite, name)
    with folder_of_a_run() as folder:
        ranks = [
            FORK.Process(target=_rank, args=(rank, size, suite, name, folder))
            for rank in range(size)
        ]
        for rank in ranks:
            rank.start()
        deadline = time.monotonic() + DEADLINE_S
        while any(rank.is_alive() for rank in ranks) and time.monotonic() < deadline:
            if any(rank.exitcode for rank in ranks):
                deadline = min(deadline, time.monotonic() + GRACE_S)
            time.sleep(0.01)
        for rank in ranks:
            rank.kill()
            rank.join()
        files = [Path(f"{folder}/ended-{rank}") for rank in range(size)]
        return [file.read_text() if file.exists() else "nothing" for file in files]


def main(suite: str, names: list[str]) -> None:
    if names == ["list"]:
        print(json.dumps({name: cases.world_size_of(suite, name) for name in cases.names(suite)}))
        return
    for name in names:
        print(json.dumps([name, ends(suite, name)]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
