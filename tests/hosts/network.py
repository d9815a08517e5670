"""A separate network for tests: a namespace for each host, joined by a bridge, with a Dask worker in each.

The kernel (the test's process) and the scheduler are on the bridge, so no host reaches them or other hosts by
loopback. Each host also has a separate name. This needs root, and `ip` from iproute2.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from helpers.hosts.machines import Hosts

START_S, END_S = 60.0, 20.0
_NUMBERS = itertools.count(1)


@cache
def why_not() -> str:
    """Return the reason why no such network can be made here, or ""."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        return "needs root and `ip` of iproute2"
    name = f"rr{os.getpid()}x"
    made = subprocess.run(["ip", "link", "add", name, "type", "bridge"], capture_output=True)
    if made.returncode:
        return f"this kernel makes no network: {made.stderr.decode().strip()}"
    _ip(f"link del {name}")
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True)
    if made.returncode:
        return f"this kernel makes no namespaces: {made.stderr.decode().strip()}"
    _ip(f"netns del {name}")
    return ""


@dataclass
class Host:
    """One namespace, with its name, its address and its Dask worker."""

    name: str
    address: str
    namespace: str
    worker: subprocess.Popen[bytes]

    def ip(self, words: str) -> None:
        """Run `ip WORDS` on this host."""
        _ip(f"netns exec {self.namespace} ip {words}")

    def unplug(self) -> None:
        """Unplug the cable: no message arrives, and no process is notified."""
        self.ip("link set eth0 down")

    def processes(self) -> list[psutil.Process]:
        """Return this host's processes except the Dask worker: rank servers and ranks."""
        found = []
        for pid in _run_command(f"netns pids {self.namespace}").split():
            with suppress(psutil.NoSuchProcess):
                process = psutil.Process(int(pid))
                if "distributed" not in " ".join(process.cmdline()):
                    found.append(process)
        return [p for p in found if "helpers" in " ".join(p.cmdline()) or "rank" in p.name()]


@dataclass
class Network:
    """The hosts, and the address of the cluster's scheduler."""

    scheduler: str
    hosts: list[Host] = field(default_factory=list)

    def machines(self) -> Hosts:
        return Hosts(lambda: self.scheduler)


@contextmanager
def network(
    *names: str,
    env: Mapping[str, Mapping[str, str]] | None = None,
    python: Mapping[str, str] | None = None,
    ahead_s: Mapping[str, int] | None = None,
) -> Iterator[Network]:
    """Make hosts with these names.

    The options apply to the named hosts. env: additional environment of the worker. python: its interpreter.
    ahead_s: the number of seconds by which the host's monotonic clock is ahead.
    """
    from distributed import LocalCluster

    mark = f"{os.getpid()}{next(_NUMBERS):02}"
    bridge, subnet = f"rrb{mark}"[:15], f"10.{os.getpid() % 200 + 20}.{int(mark[-2:])}"
    with ExitStack() as undo:
        _ip(f"link add {bridge} type bridge")
        undo.callback(_ip, f"link del {bridge}")
        _ip(f"addr add {subnet}.1/24 dev {bridge}")
        _ip(f"link set {bridge} up")
        cluster: Any = undo.enter_context(
            LocalCluster(n_workers=0, dashboard_address=":0", host=f"{subnet}.1")
        )
        net = Network(cluster.scheduler_address)
        for at, name in enumerate(names, 2):
            namespace = f"rr{mark}-{name}"
            _ip(f"netns add {namespace}")
            undo.callback(_ip, f"netns del {namespace}")
            veth = f"rrv{mark}{at}"[:15]
            _ip(f"link add {veth} type veth peer name eth0 netns {namespace}")
            undo.callback(_ip, f"link del {veth}")  # the namespace is removed later, when empty
            _ip(f"link set {veth} master {bridge} up")
            _ip(f"netns exec {namespace} ip addr add {subnet}.{at}/24 dev eth0")
            _ip(f"netns exec {namespace} ip link set eth0 up")
            _ip(f"netns exec {namespace} ip link set lo up")
            program = (python or {}).get(name, sys.executable)
            own = f"hostname {name}; exec {program} -m distributed.cli.dask_worker {net.scheduler}"
            options = f"--host {subnet}.{at} --nthreads 1 --no-dashboard --death-timeout 60"
            clock = ["--time", "--monotonic", f"{(ahead_s or {}).get(name, 0)}", "--fork"]
            worker = subprocess.Popen(
                [
                    "ip",
                    "netns",
                    "exec",
                    namespace,
                    "unshare",
                    "--uts",
                    *(clock if ahead_s else []),
                    "sh",
                    "-c",
                    f"{own} {options}",
                ],
                env={**os.environ, **(env or {}).get(name, {})},
                cwd="/",  # not this checkout, which Python would find first
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            undo.callback(_end, worker, namespace)
            net.hosts.append(Host(name, f"{subnet}.{at}", namespace, worker))
        until = time.monotonic() + START_S
        while len(cluster.scheduler.workers) < len(names):
            assert time.monotonic() < until, "the workers have not started"
            time.sleep(0.05)
        yield net


def wait_until(holds: Any, seconds: float = END_S) -> None:
    """Wait until a condition is true. Fail if this takes too long."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, holds
        time.sleep(0.05)


def copy_of_course(folder: Path) -> Path:
    """Copy the parts of the course that a worker needs, so that a test can change them. Return `folder`."""
    import helpers

    source = Path(helpers.__file__).parent
    for name in ("hosts", "ranks", "trace"):
        shutil.copytree(source / name, folder / "helpers" / name)
    for name in ("__init__.py", "vocabulary.py"):
        shutil.copy(source / name, folder / "helpers")
    return folder


def _end(worker: subprocess.Popen[bytes], namespace: str) -> None:
    for pid in _run_command(f"netns pids {namespace}").split():
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
    worker.wait(10)


def _ip(words: str) -> None:
    subprocess.run(["ip", *words.split()], check=True, timeout=20)


def _run_command(words: str) -> str:
    return subprocess.run(["ip", *words.split()], capture_output=True, text=True, timeout=20).stdout
