"""Hosts that reach each other only through a network, which can fail."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from helpers import launch
from helpers.hosts.machines import Hosts
from helpers.ranks.failures import HostLost, LaunchError
from tests.hosts.network import Network, copy_of_course, network, wait_until, why_not

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]


@pytest.fixture
def two() -> Iterator[Network]:
    with network("n1", "n2") as net:
        yield net


@pytest.mark.extended
def test_ranks_communicate_and_report_vanished_host(two: Network, tmp_path: Path) -> None:
    def where(rank: int, world_size: int) -> tuple[float, str, str, str]:
        total = torch.tensor(float(rank))
        dist.all_reduce(total)
        return (
            total.item(),
            os.uname().nodename,
            os.environ["MASTER_ADDR"],
            os.environ["GLOO_SOCKET_IFNAME"],
        )

    def waits(rank: int, world_size: int, folder: Path) -> None:
        dist.barrier()  # its first call imports modules
        print("here", flush=True)
        (folder / str(rank)).touch()
        if rank == 3:
            time.sleep(100)
        dist.barrier()

    def unplug_when_all_wait() -> None:
        wait_until(lambda: len(list(tmp_path.iterdir())) == 4)
        time.sleep(2.0)
        two.hosts[1].unplug()

    with two.machines():
        run = launch(where, 4)
        at = two.hosts[0].address
        assert run.hosts == ("n1", "n1", "n2", "n2")
        assert run.values == [(6.0, host, at, "eth0") for host in run.hosts]
        assert two.hosts[1].processes()

        threading.Thread(target=unplug_when_all_wait).start()
        run = launch(waits, 4, args=(tmp_path,), on_failure="return", timeout=60)
    assert isinstance(run.failure, HostLost)
    assert run.failure.host == "n2" and run.failure.ranks == (2, 3)
    assert "lost host n2 and its ranks 2, 3: it has not answered" in run.failure.title
    assert "rank 0 on n1: barrier at" in str(run.failure)
    wait_until(lambda: not two.hosts[0].processes())
    wait_until(lambda: not two.hosts[1].processes())


KERNEL = """
import sys, time
from helpers import hosts, launch

def forever(rank, world_size):
    print("rank", rank, flush=True)
    time.sleep(1000)

if __name__ == "__main__":
    with hosts(sys.argv[1]):
        print("open", flush=True)
        launch(forever, 4, timeout=1000)
"""


@pytest.mark.soak
def test_killed_kernel_leaves_hosts_clean(two: Network, tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    words = [sys.executable, str(tmp_path / "kernel.py"), two.scheduler]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as kernel:
        assert kernel.stdout is not None and kernel.stdout.readline() == b"open\n"
        # rank server and two ranks
        wait_until(lambda: all(len(host.processes()) == 3 for host in two.hosts), 60)
        kernel.kill()
    for host in two.hosts:
        wait_until(lambda host=host: not host.processes())  # type: ignore[misc]
        assert host.worker.poll() is None, "the worker is another's, and goes on"


@pytest.mark.soak
def test_unplugged_idle_host_ends_its_processes(two: Network) -> None:
    machines = two.machines()
    with machines:
        launch(lambda rank, n: rank, 4)
        two.hosts[1].unplug()
        wait_until(lambda: not two.hosts[1].processes())
        with pytest.raises(LaunchError, match="n2|10[.]"):
            launch(lambda rank, n: rank, 4)


@pytest.mark.soak
def test_reports_host_with_mismatched_installation(tmp_path: Path) -> None:
    other = copy_of_course(tmp_path)
    (other / "helpers" / "ranks" / "stop.py").open("a").write("# changed\n")
    env = {"n2": {"PYTHONPATH": str(other)}}
    python = {"n3": str(python_without_torch(tmp_path))}
    with network("n1", "n2", env=env) as net:
        refused(net, r"n2 has the course \w{8}, but this machine has \w{8}")
    with network("n1", "n3", python=python) as net:
        refused(net, r"n3 does not have torch. Install the same version there as here, 2\.")


@pytest.mark.soak
def test_aligns_event_times_across_host_clocks() -> None:
    def steps(rank: int, world_size: int) -> None:
        for _ in range(20):
            dist.barrier()
            dist.send(torch.ones(1), 1) if rank == 0 else dist.recv(torch.zeros(1), 0)

    def fails(rank: int, world_size: int) -> None:
        if rank == 1:
            raise ValueError("first")
        time.sleep(1)
        raise KeyError("later")

    with network("n1", "n2", ahead_s={"n2": 1000}) as net, net.machines() as machines:
        run = launch(steps, 2)
        off_s, within_s = (value / 1e9 for value in clock_of(machines, "n2"))
        assert abs(off_s - clock_of(machines, "n1")[0] / 1e9 - 1000) < 1 and within_s < 0.5
        here = time.monotonic_ns()
        assert all(here - 60e9 < event.start_ns < here for event in run.trace.events)
        ends = [event.end_ns for event in run.trace.events if event.call == "recv"]
        starts = [event.start_ns for event in run.trace.events if event.call == "send"]
        late = [end - start for start, end in zip(starts, ends, strict=True) if end is not None]
        assert len(late) == 20 and min(late) > -within_s * 1e9
        run = launch(fails, 2, on_failure="return")
        assert "rank 1 on n2 raised ValueError: first" in str(run.failure), "whatever clocks say"


def clock_of(machines: Hosts, name: str) -> tuple[int, int]:
    """Return by how many nanoseconds a host's clock is ahead, and the possible error of this number."""
    (host,) = [each for each in machines.servers().hosts if each.name == name]
    return host.clock_ns, host.clock_within_ns


@pytest.mark.soak
def test_reports_firewall_between_hosts(two: Network) -> None:
    first, second = two.hosts
    # A packet filter sends nothing back, and neither does a missing network card.
    second.ip(f"neigh replace {first.address} lladdr 02:00:00:00:00:99 dev eth0")
    refused(two, r"n[12] cannot connect to n[12] \(.*, interface eth0\): timed out")
    second.ip(f"neigh del {first.address} dev eth0")
    with two.machines():
        assert launch(lambda rank, n: rank, 2).values == [0, 1]


def refused(net: Network, message: str) -> None:
    """Open the hosts, which must fail within ten seconds with one line."""
    start = time.monotonic()
    with pytest.raises(LaunchError, match=message) as raised:
        net.machines().open()
    assert "\n" not in str(raised.value)
    print(f"{time.monotonic() - start:.1f} s: {raised.value}")
    for host in net.hosts:
        wait_until(lambda host=host: not host.processes())  # type: ignore[misc]


def python_without_torch(folder: Path) -> Path:
    """Make an environment with all packages of this one except torch, and return its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    (site,) = (folder / "venv" / "lib").glob("python3*/site-packages")
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        if not package.name.startswith(("torch", "functorch")):
            (site / package.name).symlink_to(package)
    return folder / "venv" / "bin" / "python"
