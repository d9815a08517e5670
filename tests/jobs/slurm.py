"""A real Slurm for tests: two nodes on this machine's loopback.

Each node is a slurmd with a separate host name. Its GPUs are /dev/null and /dev/zero, which Slurm allocates
like real GPUs. This needs root and Slurm (Debian: slurmctld, slurmd, slurm-client, munge).
"""

from __future__ import annotations

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

from helpers.jobs.ports import free_port

NODES = ("gpu01", "gpu02")
_NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "unshare")
_START_S = 20.0


def why_not() -> str:
    """Return the reason why Slurm cannot run here, or ""."""
    if os.geteuid() != 0 or not all(map(shutil.which, _NEEDED)):
        return "needs root and Slurm: slurmctld, slurmd, slurm-client and munge"
    return ""


@contextmanager
def slurm(folder: Path) -> Iterator[dict[str, str]]:
    """Start Slurm with two nodes, and yield the environment for its commands."""
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
        deadline = time.monotonic() + _START_S
        while len(re.findall(r"\bidle\b", run_command(["sinfo", "-N"], env))) < len(NODES):
            logs = "\n".join(path.read_text()[-1500:] for path in folder.glob("*.log"))
            assert time.monotonic() < deadline, logs
            time.sleep(0.3)
        yield env


def _written(folder: Path) -> dict[str, str]:
    """Write Slurm's settings, and return the environment for its commands."""
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
        "SlurmdParameters=config_overrides",  # more cores than this machine has
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


def run_command(words: list[str], env: dict[str, str], cwd: Path | None = None) -> str:
    done = subprocess.run(words, env=env, cwd=cwd, capture_output=True, text=True, timeout=20)
    return done.stdout + done.stderr
