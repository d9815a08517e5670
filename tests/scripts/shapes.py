"""Twenty shapes of training scripts, and ways to run one: torchrun and `course run`."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from click.testing import CliRunner

from helpers.course.cli import main

PROGRAMS = Path(__file__).with_name("programs")
LIMIT_S = 180.0
_PREFIX = re.compile(r"^\[rank \d+\] ", re.MULTILINE)


@dataclass(frozen=True)
class Shape:
    """A script. about: its kind, in words."""

    name: str
    about: str
    ranks: int = 2
    args: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """The folder that the script and its modules need."""
        return PROGRAMS / self.name if (PROGRAMS / self.name).is_dir() else PROGRAMS

    @property
    def text(self) -> str:
        return (self.folder / f"{self.name}.py").read_text(encoding="utf-8")


SHAPES = (
    Shape("nanogpt", "nanoGPT with DDP"),
    Shape("hf_loop", "a loop in Hugging Face's style"),
    Shape("fsdp_loop", "FSDP2"),
    Shape("recipe", "a recipe in torchtune's style", args=("lr=0.02", "epochs=2")),
    Shape("gan", "a GAN with two optimizers"),
    Shape("rl_roles", "reinforcement learning with roles", ranks=3),
    Shape("eval_rank0", "evaluation on rank 0"),
    Shape("accumulate", "gradient accumulation with no_sync"),
    Shape("autocast", "mixed precision (bfloat16)"),
    Shape("resume", "save a checkpoint and resume"),
    Shape("loader_workers", "DataLoader workers"),
    Shape("sampler", "DistributedSampler"),
    Shape("tensor_parallel", "tensor parallelism on a mesh"),
    Shape("pipeline", "a pipeline with send and recv", ranks=3),
    Shape("ema", "averaged gradients and an average of weights"),
    Shape("scheduler", "a scheduler that follows the loss"),
    Shape("logging_args", "argparse and logging", args=("--lr", "0.5", "--steps", "3")),
    Shape("subgroups", "groups of ranks", ranks=4),
    Shape("async_ops", "asynchronous calls"),
    Shape("own_module", "a script with modules in its folder"),
)


@dataclass(frozen=True)
class Ending:
    """The ending of a job. code: None if the job was killed after its time limit."""

    code: int | None
    output: str
    errors: str
    seconds: float

    def lines(self) -> Counter[str]:
        """Return the lines printed by the ranks, without the ranks' numbers."""
        return Counter(_PREFIX.sub("", self.output).splitlines())

    @property
    def text(self) -> str:
        return f"{self.output}\n{self.errors}"


def under_torchrun(
    script: Path, ranks: int, args: tuple[str, ...], limit_s: float = LIMIT_S
) -> Ending:
    """Run a script with torchrun. Its workers write to files, as their lines would mix in one pipe."""
    with tempfile.TemporaryDirectory() as logs:
        options = ("--standalone", "--nproc-per-node", str(ranks), "--log-dir", logs)
        words = (*options, "--redirects", "1", str(script), *args)
        ending = _run(("-m", "torch.distributed.run", *words), script.parent, limit_s)
        printed = [path.read_text() for path in sorted(Path(logs).rglob("stdout.log"))]
    return replace(ending, output="".join(printed) + ending.output)


def under_course_run(
    script: Path, ranks: int, args: tuple[str, ...], *options: str, limit_s: float = LIMIT_S
) -> Ending:
    """Run a script with `course run`."""
    words = ("--ranks", str(ranks), *options, str(script), *args)
    course = str(Path(sys.executable).with_name("course"))
    return _run((course, "run", *words), script.parent, limit_s)


def _run(words: tuple[str, ...], folder: Path, limit_s: float) -> Ending:
    loopback = {"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}
    hidden = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_PORT", "GITHUB_ACTIONS")
    environment = {k: v for k, v in os.environ.items() if k not in hidden} | loopback
    start = time.monotonic()
    job = subprocess.Popen(
        [sys.executable, *words],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, errors = job.communicate(timeout=limit_s)
        code: int | None = job.returncode
    except subprocess.TimeoutExpired:
        # torchrun passes SIGTERM on to its workers
        with contextlib.suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGTERM)
        try:
            output, errors = job.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
            output, errors = job.communicate(timeout=60)
        code = None
    return Ending(code, output, errors, time.monotonic() - start)


def in_this_process(script: Path, ranks: int, args: tuple[str, ...], *options: str) -> Ending:
    """Run a script with `course run` in this process, whose rank server serves all such runs."""
    start, here = time.monotonic(), Path.cwd()
    os.chdir(script.parent)
    try:
        words = ["run", "--ranks", str(ranks), *options, script.name, *args]
        result = CliRunner().invoke(main, words)
    finally:
        os.chdir(here)
    return Ending(result.exit_code, result.stdout, result.stderr, time.monotonic() - start)
