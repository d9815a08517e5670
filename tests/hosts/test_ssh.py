"""`hosts.ssh` through a real sshd on loopback, with keys made for the test."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest
import torch
import torch.distributed as dist

from helpers import hosts, launch
from helpers.jobs.ports import free_port
from helpers.ranks.failures import LaunchError
from tests.hosts.network import wait_until

SSHD = shutil.which("sshd", path=os.pathsep.join([os.environ["PATH"], "/usr/sbin"]))

pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        not SSHD or os.geteuid() != 0 or not find_spec("asyncssh"),
        reason="needs root, sshd and asyncssh",
    ),
]

SERVER = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
PidFile {folder}/sshd.pid
PermitRootLogin yes
PasswordAuthentication no
StrictModes no
"""
CLIENT = """\
Host n1 n2
  HostName 127.0.0.1
  Port {port}
  User root
  IdentityFile {folder}/key
"""


@pytest.fixture
def sshd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[psutil.Process]:
    """Make "n1" and "n2" names of this machine, in the ssh configuration of this home directory."""
    port = free_port()
    for name in ("host_key", "key"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)]
        subprocess.run(words, check=True, timeout=20)
    (tmp_path / "sshd_config").write_text(SERVER.format(port=port, folder=tmp_path))
    own = tmp_path / ".ssh"
    own.mkdir(mode=0o700)
    (own / "config").write_text(CLIENT.format(port=port, folder=tmp_path))
    key = " ".join((tmp_path / "host_key.pub").read_text().split()[:2])
    names = ",".join(f"[{name}]:{port}" for name in ("n1", "n2", "127.0.0.1"))
    (own / "known_hosts").write_text(f"{names} {key}\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    Path("/run/sshd").mkdir(exist_ok=True)  # required by sshd, but only created by its service
    server = subprocess.Popen([str(SSHD), "-D", "-e", "-f", str(tmp_path / "sshd_config")])
    try:
        until = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert server.poll() is None and time.monotonic() < until, "sshd does not start"
                time.sleep(0.05)
        yield psutil.Process(server.pid)
    finally:
        server.terminate()
        server.wait(10)


def test_ssh_ranks_run_on_named_hosts(sshd: psutil.Process) -> None:
    def total(rank: int, world_size: int) -> tuple[str, float]:
        x = torch.tensor(float(rank))
        dist.all_reduce(x)
        return os.environ["GROUP_RANK"], x.item()

    with hosts.ssh("n1", "n2"):
        run = launch(total, 4)
        assert run.values == [("0", 6.0), ("0", 6.0), ("1", 6.0), ("1", 6.0)]
        assert len(set(run.hosts)) == 2 and len(sshd.children(recursive=True)) >= 3
    wait_until(lambda: not sshd.children(recursive=True))


def test_reports_unreachable_host(sshd: psutil.Process) -> None:
    start = time.monotonic()
    with pytest.raises(LaunchError, match="n3"):
        hosts.ssh("n1", "n3.invalid").open()
    print(f"{time.monotonic() - start:.1f} s")
