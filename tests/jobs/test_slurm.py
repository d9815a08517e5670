"""A real Slurm obeys the batch scripts of exercise 22.3."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.answers.build import Answer
from helpers.answers.reader import read_answers
from helpers.course.workspace import find_workspace
from tests.jobs.slurm import NODES, run_command, slurm, why_not
from tests.submission_files import PRELUDE, samples_of

JOB_S = 90.0

WORK = """\
import os
import torch.distributed as dist

dist.init_process_group("gloo")
everyone = [None] * dist.get_world_size()
dist.all_gather_object(everyone, (dist.get_rank(), os.uname().nodename))
if dist.get_rank() == 0:
    print("ranks:", everyone, flush=True)
dist.destroy_process_group()
"""

pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Start Slurm, and yield the environment for its commands."""
    with slurm(tmp_path_factory.mktemp("slurm")) as env:
        yield env


def _scripts() -> dict[str, str]:
    """Return the sources of the reference and of all stored right answers that need no real GPU."""
    path = find_workspace().solutions / "22_launchers_and_backends.ipynb"
    reference = read_answers(path, ["slurm_script"])["slurm_script"]
    assert isinstance(reference, Answer)
    kept = [s for s in samples_of("slurm_script") if s.right]
    kept = [s for s in kept if not re.search(r"nproc.per.node[= ](gpu|auto)", s.source)]
    return {"reference": reference.source} | {str(s): f"{PRELUDE}\n{s.source}" for s in kept}


@pytest.mark.parametrize("name", _scripts())
def test_slurm_grants_requested_resources_to_script(
    name: str, cluster: dict[str, str], tmp_path: Path
) -> None:
    namespace: dict[str, object] = {}
    exec(_scripts()[name], namespace)  # the course's own answers, stored next to the tests
    (tmp_path / "probe.py").write_text(WORK)
    job = tmp_path / "job.sh"
    job.write_text(str(namespace["slurm_script"]("probe7", 2, 2, 5, "probe.py")))  # type: ignore[operator]
    output = tmp_path / "job.out"
    answer = run_command(
        ["sbatch", "--parsable", f"--output={output}", str(job)], cluster, tmp_path
    )
    number = answer.strip().partition(";")[0]
    assert number.isdigit(), answer
    deadline = time.monotonic() + JOB_S
    try:
        while number in run_command(["squeue", "-h", "-o", "%i"], cluster).split():
            assert time.monotonic() < deadline, run_command(
                ["scontrol", "show", "job", number], cluster
            )
            time.sleep(0.5)
        told = output.read_text()
        found = re.search(r"ranks: (.*)", told)
        assert found, told[-3000:]
        ranks = ast.literal_eval(found[1])  # the rendezvous decides which node comes first
        assert [rank for rank, _ in ranks] == [0, 1, 2, 3]
        assert sorted(node for _, node in ranks) == sorted(NODES * 2)
        about = run_command(["scontrol", "show", "job", number], cluster)
        for word in ("JobName=probe7", "TimeLimit=00:05:00", "NumCPUs=32", "JobState=COMPLETED"):
            assert word in about, about
    finally:
        run_command(["scancel", number], cluster)
