"""`hosts.slurm` on a real Slurm with two nodes, outside and inside an allocation."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from helpers import hosts, launch
from tests.hosts.network import wait_until
from tests.jobs.slurm import NODES, run_command, slurm, why_not

pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]

KERNEL = """
import os

import torch
import torch.distributed as dist

from helpers import hosts, launch


def where(rank, world_size):
    total = torch.tensor(float(rank))
    dist.all_reduce(total)
    return os.uname().nodename, int(os.environ["LOCAL_RANK"]), total.item()


if __name__ == "__main__":
    with hosts.slurm():
        print(sorted(launch(where, 4).values), flush=True)
"""
EXPECTED = [(node, local, 6.0) for node in NODES for local in (0, 1)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with slurm(tmp_path_factory.mktemp("slurm")) as env:
        yield env


def test_launch_allocates_and_releases_nodes(
    cluster: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def where(rank: int, world_size: int) -> tuple[str, int, float]:
        total = torch.tensor(float(rank))
        dist.all_reduce(total)
        return os.uname().nodename, int(os.environ["LOCAL_RANK"]), total.item()

    for name in ("SLURM_CONF", "PATH"):
        monkeypatch.setenv(name, cluster[name])
    with hosts.slurm(nodes=2):
        run = launch(where, 4)
        assert run.hosts == tuple(node for node, _, _ in run.values)
        assert run.values == EXPECTED, "in the order of the nodes"
        assert run_command(["squeue", "-h", "-o", "%D"], cluster).split() == ["2"]
    wait_until(lambda: not run_command(["squeue", "-h"], cluster).strip())


def test_kernel_uses_nodes_of_its_allocation(cluster: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    root = Path(__file__).parents[2]
    words = ["salloc", "--nodes=2", "--quiet", sys.executable, str(tmp_path / "kernel.py")]
    done = subprocess.run(
        words,
        env={**cluster, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.stdout.strip() == str(EXPECTED), done.stderr[-3000:]
    wait_until(lambda: not run_command(["squeue", "-h"], cluster).strip())
