"""A job that exceeds its time limit reports the location of each worker."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from helpers.jobs.run import TorchrunFailed
from helpers.jobs.stacks import describe_place, has_dump, without_dump
from helpers.jobs.torchrun import torchrun

DUMP = """before
Fatal Python error: Aborted

Thread 0x00007f1 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 300 in wait
  File "/home/me/train.py", line 2 in beat

Current thread 0x00007f2 (most recent call first):
  File "/x/site-packages/torch/distributed/distributed_c10d.py", line 3170 in all_reduce
  File "/x/site-packages/torch/distributed/c10d_logger.py", line 83 in wrapper
  File "/home/me/train.py", line 7 in step
  File "/home/me/train.py", line 12 in <module>

Extension modules: numpy._core, torch._C (total: 2)
"""


def test_reads_main_thread_of_dump() -> None:
    assert has_dump(DUMP) and describe_place(DUMP) == "in all_reduce at train.py, line 7"


def test_removes_dump_from_error_output() -> None:
    assert without_dump(DUMP + "after\n") == "before\nafter\n"
    assert without_dump("Fatal Python error: none\n") == "Fatal Python error: none\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Fatal Python error: Aborted",
        "Fatal Python error: Aborted\n" + 'File "' * 9999,
        "\x00" * 100,
        'Fatal Python error: Aborted\n\nThread 0x1 x\n  File "a", line ' + "9" * 5000 + " in f",
    ],
)
def test_accepts_arbitrary_dump_text(text: str) -> None:
    assert describe_place(text) == "" or len(describe_place(text)) < 200


HANGS = """
import sys, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
print("Fatal Python error: Aborted", file=sys.stderr)
if dist.get_rank() == 0:
    dist.all_reduce(torch.ones(1))
else:
    time.sleep(100)
"""


@pytest.mark.extended
@pytest.mark.skipif(sys.platform != "linux", reason="workers are found by /proc")
def test_reports_lines_of_hanging_workers(tmp_path: Path) -> None:
    script = tmp_path / "hangs.py"
    script.write_text(HANGS)
    with pytest.raises(TorchrunFailed, match="timed out after") as failed:
        torchrun(script, 2, timeout=15)
    assert str(failed.value).splitlines()[1:] == [
        "  rank 0: in all_reduce at hangs.py, line 6",
        "  rank 1: in its own code at hangs.py, line 8",
    ]


def test_keeps_last_output_of_aborted_worker(tmp_path: Path) -> None:
    script = tmp_path / "aborts.py"
    script.write_text("import os, sys\nsys.stderr.write('last words\\n')\nos.abort()\n")
    with pytest.raises(TorchrunFailed, match="SIGABRT; its error output ends with: last words"):
        torchrun(script, 1, timeout=60)
