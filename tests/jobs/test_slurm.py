"""A real Slurm obeys the batch scripts of exercise 22.3: two nodes, on loopback, of this machine.

Each node is a slurmd with a host name of its own; its GPUs are /dev/null and /dev/zero, which Slurm hands out
as it would others. Skipped where Slurm is not installed (Debian: slurmctld, slurmd, slurm-client, munge).
"""

from __future__ import annotations

import ast
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from helpers.answers.build import Answer
from helpers.answers.reader import read_answers
from helpers.course.workspace import find_workspace
from helpers.jobs.ports import free_port
from tests.submission_files import PRELUDE, all_samples

NODES = ("gpu01", "gpu02")
NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "unshare")
START_S, JOB_S = 20.0, 90.0

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
    pytest.mark.skipif(
        os.geteuid() != 0 or not all(map(shutil.which, NEEDED)),
        reason="needs root and Slurm: slurmctld, slurmd, slurm-client and munge",
    ),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Start Slurm with two nodes; give the environment in which its commands reach it."""
    folder = tmp_path_factory.mktemp("slurm")
    folder.chmod(0o755)
    env = _written(folder)
    with ExitStack() as running:
        munge = folder / "munge"
        words = ["munged", "--foreground", "--force", f"--key-file={folder / 'key'}"]
        words += [f"--socket={munge}/socket", f"--pid-file={munge}/pid"]
        words += [f"--seed-file={munge}/seed", f"--log-file={folder}/munge.log"]
        running.enter_context(_started(words, env, folder / "munged.log"))
        running.enter_context(_started(["slurmctld", "-D", "-i"], env, folder / "slurmctld.log"))
        for node in NODES:
            own = f"hostname {node}; mount --bind {folder}/hosts /etc/hosts; exec slurmd -D"
            words = ["unshare", "--uts", "--mount", "sh", "-c", own]
            running.enter_context(_started(words, env, folder / f"{node}.log"))
        deadline = time.monotonic() + START_S
        while len(re.findall(r"\bidle\b", _said(["sinfo", "-N"], env))) < len(NODES):
            logs = "\n".join(path.read_text()[-1500:] for path in folder.glob("*.log"))
            assert time.monotonic() < deadline, logs
            time.sleep(0.3)
        yield env


def _written(folder: Path) -> dict[str, str]:
    """Write what Slurm is told, and give the environment for it."""
    (folder / "munge").mkdir(mode=0o755)
    (folder / "key").write_bytes(secrets.token_bytes(1024))
    (folder / "key").chmod(0o400)
    (folder / "hosts").write_text(f"127.0.0.1 localhost {socket.gethostname()} {' '.join(NODES)}\n")
    (folder / "gres.conf").write_text(
        f"NodeName={','.join(NODES)} Name=gpu File=/dev/null,/dev/zero\n"
    )
    lines = [
        "ClusterName=course",
        f"SlurmctldHost={socket.gethostname()}(127.0.0.1)",
        f"SlurmctldPort={free_port()}",
        "SlurmUser=root",
        "SlurmdUser=root",
        "AuthType=auth/munge",
        f"AuthInfo=socket={folder}/munge/socket",
        f"StateSaveLocation={folder}/state",
        f"SlurmdSpoolDir={folder}/spool-%n",
        f"SlurmctldPidFile={folder}/slurmctld.pid",
        f"SlurmdPidFile={folder}/slurmd-%n.pid",
        "ProctrackType=proctrack/pgid",
        "TaskPlugin=task/none",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core",
        "SlurmdParameters=config_overrides",  # more cores than there are
        "GresTypes=gpu",
    ]
    lines += [
        f"NodeName={node} NodeAddr=127.0.0.{at} Port={free_port()} CPUs=16 Gres=gpu:2"
        for at, node in enumerate(NODES, 1)
    ]
    lines.append(f"PartitionName=main Nodes={','.join(NODES)} Default=YES State=UP")
    (folder / "slurm.conf").write_text("\n".join(lines) + "\n")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return os.environ | {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": path}


@contextmanager
def _started(words: list[str], env: dict[str, str], log: Path) -> Iterator[None]:
    with log.open("wb") as file:
        process = subprocess.Popen(words, env=env, stdout=file, stderr=file)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)


def _said(words: list[str], env: dict[str, str], cwd: Path | None = None) -> str:
    done = subprocess.run(words, env=env, cwd=cwd, capture_output=True, text=True, timeout=20)
    return done.stdout + done.stderr


def _scripts() -> dict[str, str]:
    """Return the source of the reference and of every right answer that is kept and needs no real GPU."""
    path = find_workspace().solutions / "22_other_roads.ipynb"
    reference = read_answers(path, ["slurm_script"])["slurm_script"]
    assert isinstance(reference, Answer)
    kept = [s for s in all_samples() if s.exercise == "slurm_script" and s.right]
    kept = [s for s in kept if not re.search(r"nproc.per.node[= ](gpu|auto)", s.source)]
    return {"reference": reference.source} | {str(s): f"{PRELUDE}\n{s.source}" for s in kept}


@pytest.mark.parametrize("name", _scripts())
def test_a_right_script_is_obeyed(name: str, cluster: dict[str, str], tmp_path: Path) -> None:
    namespace: dict[str, object] = {}
    exec(_scripts()[name], namespace)  # our own answers, kept beside the tests
    (tmp_path / "probe.py").write_text(WORK)
    job = tmp_path / "job.sh"
    job.write_text(str(namespace["slurm_script"]("probe7", 2, 2, 5, "probe.py")))  # type: ignore[operator]
    output = tmp_path / "job.out"
    said = _said(["sbatch", "--parsable", f"--output={output}", str(job)], cluster, tmp_path)
    number = said.strip().partition(";")[0]
    assert number.isdigit(), said
    deadline = time.monotonic() + JOB_S
    try:
        while number in _said(["squeue", "-h", "-o", "%i"], cluster).split():
            assert time.monotonic() < deadline, _said(["scontrol", "show", "job", number], cluster)
            time.sleep(0.5)
        told = output.read_text()
        found = re.search(r"ranks: (.*)", told)
        assert found, told[-3000:]
        ranks = ast.literal_eval(found[1])  # which node comes first is the rendezvous's to say
        assert [rank for rank, _ in ranks] == [0, 1, 2, 3]
        assert sorted(node for _, node in ranks) == sorted(NODES * 2)
        about = _said(["scontrol", "show", "job", number], cluster)
        for word in ("JobName=probe7", "TimeLimit=00:05:00", "NumCPUs=32", "JobState=COMPLETED"):
            assert word in about, about
    finally:
        _said(["scancel", number], cluster)
