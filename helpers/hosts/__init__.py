"""Run the same cell on several machines.

    with hosts("tcp://scheduler:8786"):         # an existing Dask cluster
        launch(f, 8)

Requested machines:
    machines  `Hosts`: opening, comparing and closing machines
    clusters  clusters of local processes, by ssh, and by Slurm
    names     names and addresses
    versions  versions required to be the same on all hosts
In the kernel:
    servers   the rank servers of a `World`
    link      the connection to one host
Between kernel and host:
    peer      two ends that call each other's methods
On a host:
    worker    code in Dask's worker that owns the rank server
    network   interfaces and ports
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from helpers.hosts.machines import Hosts


def connect(address: str, *, interface: str = "") -> Hosts:
    """Return the machines of a Dask cluster, for `launch` and `%%ranks`; `hosts(address)` does the same.

    No connection is made before `open()` or the first `with`. If a machine cannot be used, they raise
    LaunchError with a line that describes the problem.

    Args:
        address: The address of the cluster's scheduler, "tcp://HOST:PORT". On each machine, one worker starts
            a rank server.
        interface: The network interface for connections between ranks ("eth0"); by default, the interface
            with the Dask worker's address.
    """
    from helpers.hosts.machines import Hosts
    from helpers.hosts.names import check_text

    check_text(address)
    return Hosts(lambda: address, interface)


def local(n: int = 2) -> Hosts:
    """Return `n` hosts that are processes of this machine, to try out features for several hosts."""
    from helpers.hosts.clusters import local_cluster
    from helpers.hosts.machines import Hosts, Kind
    from helpers.hosts.names import check_count

    check_count("hosts.local", n, 1)
    return Hosts(lambda: local_cluster(n), kind=Kind.LOCAL)


def ssh(*names: str, interface: str = "") -> Hosts:
    """Return machines reachable by ssh without a password. Dask starts a worker on each of them.

    The first machine also runs the scheduler. All machines need the same Python environment at the same path.
    """
    from helpers.hosts.clusters import ssh_cluster
    from helpers.hosts.machines import Hosts, Kind
    from helpers.hosts.names import check_text

    check_text(*names)
    return Hosts(lambda: ssh_cluster(names), interface, Kind.STARTED)


def slurm(nodes: int = 0, *, interface: str = "") -> Hosts:
    """Return nodes of a Slurm cluster, from this process's allocation or from a new one.

    nodes: the number of nodes; 0 for all nodes of the allocation.
    """
    from helpers.hosts.clusters import SlurmCluster
    from helpers.hosts.machines import Hosts, Kind
    from helpers.hosts.names import check_count

    check_count("hosts.slurm", nodes, 0)
    return Hosts(lambda: SlurmCluster(nodes), interface, Kind.STARTED)


class _Callable(ModuleType):
    """Makes the package callable, because the learners' function `hosts(address)` has the same name."""

    def __call__(self, address: str, *, interface: str = "") -> Hosts:
        return connect(address, interface=interface)


sys.modules[__name__].__class__ = _Callable
