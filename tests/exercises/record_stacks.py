"""Record the stacks of 18.4: `python -m tests.exercises.record_stacks` runs `stuck_job` under torchrun.

It prints `STACKS` for helpers/exercises/nb18_torchrun/shared.py: for each way to hang, the stacks of the
rank to blame, of one of the ranks that wait for it in the same call, and of one that waits elsewhere.
"""

from __future__ import annotations

import re
import shutil
import signal
import tempfile
import time
from pathlib import Path

from helpers.jobs.torchrun import start_torchrun

WAYS = {
    "loader": 2,
    "chain": 0,
    "recv": 3,
    "evaluate": 1,
    "clip": 2,
    "barrier": 1,
    "objects": 3,
    "rendezvous": 2,
    "save": 1,
}
"""Each way to hang, and the rank to blame."""


def record(way: str, culprit: int) -> list[str]:
    """Run a job until it hangs; return each rank's stacks."""
    with tempfile.TemporaryDirectory() as folder:
        script = shutil.copy(Path(__file__).with_name("stuck_job.py"), f"{folder}/train.py")
        texts: list[str] = []
        with start_torchrun(script, 4, args=[way, str(culprit)]) as job:
            for _ in range(60):
                time.sleep(1.0)
                before = texts
                files = [Path(folder, f"{rank}.stacks") for rank in range(4)]
                if not all(file.exists() for file in files):
                    continue
                for file in files:
                    file.write_text("")
                for worker in job.workers():
                    job.kill(worker.rank, signal.SIGUSR1)
                time.sleep(0.5)
                texts = [shortened(file.read_text(), folder) for file in files]
                if texts == before and all(texts):
                    return texts
    raise RuntimeError(f"{way}: the job does not hang: {texts}")


def shortened(text: str, folder: str) -> str:
    """Return stacks without the folders of this machine."""
    text = text.replace("\0", "").replace(f"{Path(folder).resolve()}/", "")
    return re.sub(r'"[^"]*/(?:site-packages|lib/python3\.\d+)/', '"', text)


if __name__ == "__main__":
    for way, culprit in WAYS.items():
        for rank, text in enumerate(record(way, culprit)):
            print(f"--- {way} {'culprit' if rank == culprit else rank}\n{text}", flush=True)
