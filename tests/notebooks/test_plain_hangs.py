"""Run the hanging programs of notebooks under plain torchrun, to see what happens without the course."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from helpers.course.notebook_file import read_notebook, source_of
from tests.notebooks.solved import SOLVED

START_S = 100.0
# A closed connection reaches gloo's peers within milliseconds. So a rank that still waits after this time
# waits for the timeout of its group.
STILL_WAITING_S = 4.0

# A rank writes its file once it has joined, so that the test's patience does not include imports.
SCRIPT = """
import os, sys
import torch
import torch.distributed as dist

{cells}

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
open(os.path.join(sys.argv[1], f"joined-{{rank}}"), "w").close()
print(rank, {call}, flush=True)
"""

SWEEP = "[(torch.tensor([3.0]), torch.ones(4)), (torch.tensor([1.0]), torch.zeros(4))][rank]"
WAITS = {
    "00-07": ("one_stays_away(rank, world_size)", 4),
    "02-09": ("both_receive_first(rank, world_size)", 2),
    "06-12": (f"share_the_best(rank, world_size, *{SWEEP})", 2),
    "06-42": ("barrier_for_one(rank, world_size)", 3),
    "07-44c": ("train_on_shares(rank, world_size)", 2),
}


def _definitions(cell_id: str) -> str:
    """Return the code of a cell without its call of `launch`."""
    (path,) = [path for path in SOLVED if path.stem.startswith(cell_id[:2])]
    (source,) = [source_of(cell) for cell in read_notebook(path)["cells"] if cell["id"] == cell_id]
    return source.partition("\n\n\n")[0]


@contextmanager
def _torchrun(folder: Path, cell_id: str, call: str, ranks: int) -> Iterator[subprocess.Popen[str]]:
    """Run a cell's function on plain ranks, and end all of them at the end of the block."""
    script = folder / "program.py"
    script.write_text(SCRIPT.format(cells=_definitions(cell_id), call=call))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    with (folder / "log").open("w") as log:
        agent = subprocess.Popen(
            [*command, f"--nproc-per-node={ranks}", str(script), str(folder)],
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )
        try:
            yield agent
        finally:
            # torchrun puts each worker into a separate session, and ends all workers on SIGTERM.
            agent.send_signal(signal.SIGTERM)
            try:
                agent.wait(40)
            except subprocess.TimeoutExpired:
                os.killpg(agent.pid, signal.SIGKILL)
                agent.wait()


@pytest.mark.extended
@pytest.mark.parametrize("cell_id", WAITS)
def test_plain_ranks_keep_waiting(tmp_path: Path, cell_id: str) -> None:
    call, ranks = WAITS[cell_id]
    with _torchrun(tmp_path, cell_id, call, ranks) as agent:
        deadline = time.monotonic() + START_S
        while len(list(tmp_path.glob("joined-*"))) < ranks:
            assert agent.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        with pytest.raises(subprocess.TimeoutExpired):
            agent.wait(STILL_WAITING_S)


@pytest.mark.extended
def test_plain_peers_notice_rank_exit(tmp_path: Path) -> None:
    """Notebook 06 says that gloo's other ranks fail if the missing rank's process exits."""
    with _torchrun(tmp_path, "06-04", "one_rank_skips(rank, world_size)", 4) as agent:
        assert agent.wait(START_S) != 0
    assert "Connection closed by peer" in (tmp_path / "log").read_text()


@pytest.mark.extended
def test_plain_rank_reports_timeout(tmp_path: Path) -> None:
    with _torchrun(tmp_path, "06-09", "impatient(rank, world_size)", 2) as agent:
        assert agent.wait(START_S) == 0
    log = (tmp_path / "log").read_text()
    assert "0 skips" in log and "1 Timed out waiting 1000ms" in log
