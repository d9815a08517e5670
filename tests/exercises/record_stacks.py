"""Record the stacks of 18.4: `python -m tests.exercises.record_stacks` runs `stuck_job` under torchrun.

It prints the main threads' stacks for helpers/exercises/nb18_torchrun/shared.py, in the form that
`format_stack` reads: for each way to hang, first the rank to blame, then every other stack once.
"""

from __future__ import annotations

import re
import shutil
import signal
import tempfile
import time
from pathlib import Path

from helpers.exercises.nb18_torchrun.shared import STACK_FILES
from helpers.jobs.torchrun import start_torchrun

WAYS = {
    "loader": 2,
    "chain": 0,
    "recv": 3,
    "evaluate": 1,
    "group": 1,
    "clip": 2,
    "barrier": 1,
    "objects": 3,
    "rendezvous": 2,
    "save": 1,
}
"""Each way to hang, and the rank to blame."""
_FRAME = re.compile(r'File ".*?([^/"]+)", line (\d+) in (\S+)')


def record(way: str, culprit: int) -> list[str]:
    """Run a job until it hangs, so that two samples are equal. Return each rank's stacks."""
    texts: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        script = shutil.copy(Path(__file__).with_name("stuck_job.py"), f"{folder}/train.py")
        files = [Path(folder, f"{rank}.stacks") for rank in range(4)]
        with start_torchrun(script, 4, args=[way, str(culprit)]) as job:
            for _ in range(60):
                time.sleep(1.0)
                before = texts
                if all(file.exists() for file in files):
                    for rank in range(4):
                        job.kill(rank, signal.SIGUSR1)
                    time.sleep(0.5)
                    texts = [short(file.read_text(encoding="utf-8")) for file in files]
                    if texts == before and all(texts):
                        return texts
    raise RuntimeError(f"{way}: the job does not hang: {texts}")


def short(text: str) -> str:
    """Return the main thread's last stack as `format_stack` reads it."""
    letters = {Path(file).name: letter for letter, file in STACK_FILES.items()}
    frames = _FRAME.findall(text.rpartition("Current thread")[2])
    return " ".join(f"{letters[file]}{line}:{name}" for file, line, name in frames)


if __name__ == "__main__":
    for way, culprit in WAYS.items():
        stacks = record(way, culprit)
        for stack in dict.fromkeys([stacks[culprit], *stacks]):
            print(way, stack, sep=": ", flush=True)
