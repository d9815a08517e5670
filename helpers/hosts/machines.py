"""Use the machines of a Dask cluster for `launch` and `%%ranks`: `hosts(...)`."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import ipaddress
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from enum import Enum, auto
from typing import Any, Self

from helpers.hosts.link import HostLink, wait_for_answer
from helpers.hosts.names import check_address, host_in
from helpers.hosts.peer import Problem
from helpers.hosts.servers import HostServers
from helpers.hosts.versions import versions
from helpers.ranks.failures import LaunchError
from helpers.ranks.launcher import add_note, use_hosts
from helpers.ranks.rank_context import check_launch_allowed

# Timeouts in seconds: to connect, for an answer, and for a nanny to restart a worker.
_CONNECT_S = 5.0
_ANSWER_S = 8.0
_NANNY_S = 3.0


class Kind(Enum):
    """The origin of a Dask cluster."""

    # An existing cluster, of which one worker on each machine is used.
    FOUND = auto()
    # A cluster started for this kernel, with a worker for each host. It ends even if the kernel is killed.
    STARTED = auto()
    # The same, except that workers are child processes of the kernel.
    LOCAL = auto()


class Hosts:
    """Several machines for `launch` and `%%ranks`, used in a `with` block or by `--where NAME`.

    `with machines:` opens the machines if they are not open, and in this case closes them at the end of the
    block. So a notebook should call `machines.open()` first. Then `with machines:` in each cell uses the
    running servers.
    """

    def __init__(
        self,
        cluster: Callable[[], Any],
        interface: str = "",
        kind: Kind = Kind.FOUND,
    ) -> None:
        """Store the arguments needed to reach the cluster, without connecting to it.

        Args:
            cluster: A function that returns a scheduler's address or a Dask cluster object. It is called when
                the hosts are opened.
            interface: The network interface for the ranks' traffic; by default, the interface with the
                worker's address.
            kind: The origin of the cluster.
        """
        self._cluster = cluster
        self._interface = interface
        self._kind = kind
        self._open = ExitStack()
        self._client: Any = None
        self._servers: HostServers | None = None
        self._blocks: list[ExitStack] = []

    def __repr__(self) -> str:
        servers = self._servers
        if servers is None:
            return "hosts (not open)"
        return f"hosts: {', '.join(host.name for host in servers.hosts)} (open)"

    @property
    def names(self) -> list[str]:
        """The names of the hosts, in the order used for placing ranks."""
        return [host.name for host in self.servers().hosts]

    def open(self) -> Self:
        """Unless the hosts are open, connect to them, compare them, and start a rank server on each."""
        self.servers()
        return self

    def close(self) -> None:
        """End the rank servers and all their ranks. End the cluster if this object started it."""
        atexit.unregister(self.close)
        self._servers, self._client = None, None
        self._open.close()

    def __enter__(self) -> Self:
        block = ExitStack()
        if self._client is None:
            block.callback(self.close)
        with ExitStack() as undo:
            undo.push(block)
            self.open()
            block.enter_context(use_hosts(self.servers))
            undo.pop_all()
        self._blocks.append(block)
        return self

    def __exit__(self, *error: object) -> None:
        self._blocks.pop().close()

    def servers(self) -> HostServers:
        """Return the hosts' rank servers. Start new ones if there are none, or if a host was lost."""
        if self._servers is not None and self._servers.alive():
            return self._servers
        check_launch_allowed()
        if self._client is not None and self._client.status == "running":
            return self._restart_servers()
        self.close()  # the scheduler may be lost, so close the remaining parts
        try:
            self._connect()
            # Register the handler after importing Dask, because exit handlers run in reverse order. Otherwise
            # Dask's handler would close the client and the cluster before `self.close` runs.
            atexit.register(self.close)
            self._servers = self._start_servers(self._workers())
        except BaseException:
            self.close()
            raise
        return self._servers

    def _restart_servers(self) -> HostServers:
        """Start rank servers on the remaining hosts, and record the lost hosts."""
        before = []
        if self._servers is not None:
            before = [host.name for host in self._servers.hosts]
            self._servers.close()
            self._servers = None
        until = time.monotonic() + _NANNY_S
        while len(workers := self._workers()) < len(before) and time.monotonic() < until:
            time.sleep(0.1)  # a nanny may be about to restart a worker
        self._servers = self._start_servers(workers)
        if lost := [name for name in before if name not in self.names]:
            add_note(f"lost {', '.join(lost)}: ranks now run on {', '.join(self.names)}")
        return self._servers

    # --- opening ----------------------------------------------------------------------------------

    def _connect(self) -> None:
        try:
            from distributed import Client
            from distributed.utils import silence_logging_cmgr
        except ModuleNotFoundError:
            raise LaunchError(
                "Dask is not installed here: pip install distributed cryptography."
            ) from None
        # Dask's log messages about ended hosts or schedulers would appear below a cell, but this module
        # already reports them.
        self._open.enter_context(silence_logging_cmgr(logging.CRITICAL))
        try:
            cluster = self._cluster()
        except RuntimeError as error:
            if self._kind is not Kind.LOCAL:
                raise
            # The likely cause is that the workers import the script again, and refuse to open further hosts.
            raise LaunchError(
                f"the workers did not start: {str(error).rstrip('.')}. In a script, hosts.local belongs "
                "under `if __name__ == '__main__':`."
            ) from None
        address = getattr(cluster, "scheduler_address", cluster)
        if self._kind is Kind.FOUND:
            check_address(address)
            _check_scheduler(address)
        else:
            self._open.enter_context(cluster)
        try:
            client = Client(  # type: ignore[no-untyped-call]
                address,
                timeout=_CONNECT_S,
                set_as_default=False,
                security=getattr(cluster, "security", None),
            )
        except (OSError, ValueError, TimeoutError) as error:
            raise LaunchError(f"no Dask scheduler answers at {address}: {error}") from None
        self._client = self._open.enter_context(client)

    def _start_servers(self, workers: Sequence[tuple[str, str]]) -> HostServers:
        self._install([worker for _, worker in workers])
        loop = self._client.loop
        with ExitStack() as undo:
            reached = []
            for name, worker in workers:
                reached.append(self._connect_host(name, worker))
                undo.callback(loop.add_callback, reached[-1][0].abort)
            own = ["host" if self._kind is Kind.LOCAL else about["name"] for _, about in reached]
            numbered = self._kind is Kind.LOCAL or len(set(own)) < len(own)
            names = [f"{name}-{i}" if numbered else name for i, name in enumerate(own)]
            _compare(
                {name: about["versions"] for name, (_, about) in zip(names, reached, strict=True)}
            )
            servers = HostServers(
                [
                    HostLink(n, *each, loop.asyncio_loop)
                    for n, each in zip(names, reached, strict=True)
                ]
            )
            undo.callback(servers.close)
            _probe(servers.hosts)
            servers.wait_until_ready()
            undo.pop_all()
        self._open.callback(servers.close)
        return servers

    def _workers(self) -> list[tuple[str, str]]:
        """Return (name, address) of one worker on each host, in the order of the hosts."""
        found = self._client.scheduler_info(n_workers=-1)["workers"]
        if not found:
            raise LaunchError("the Dask cluster has no workers. Start a worker on each host.")
        order = sorted(found, key=lambda address: _order(found[address]["name"], address))
        if self._kind is not Kind.FOUND:  # the cluster was started with one worker for each host
            return [(found[address]["host"], address) for address in order]
        first: dict[str, str] = {}
        for address in order:
            first.setdefault(found[address]["host"], address)
        return list(first.items())

    def _install(self, workers: Sequence[str]) -> None:
        """Prepare workers for serving kernels."""
        from helpers.hosts.worker import install

        local = self._kind is Kind.LOCAL
        try:
            self._client.run(install, local, workers=list(workers), callback_timeout=_ANSWER_S)
        except TimeoutError:
            raise LaunchError(
                f"a worker of the Dask cluster has not answered for {_ANSWER_S:g} s. The workers are "
                f"{', '.join(workers)}."
            ) from None
        except ModuleNotFoundError as error:
            raise LaunchError(
                f"on a worker of the Dask cluster, the course is missing or older ({error}). "
                "Install the same version there."
            ) from None
        except Exception as error:  # an error from a worker, for example a failing import
            raise LaunchError(
                f"a worker of the Dask cluster cannot load the course: {error!r}"
            ) from None

    def _connect_host(self, name: str, worker: str) -> tuple[Any, Mapping[str, Any]]:
        """Return a connection to a worker, and the worker's description of its host."""
        from helpers.hosts.worker import NAME

        request = {
            "op": NAME,
            "interface": self._interface,
            "ends_cluster": self._kind is Kind.STARTED,
            "reply": False,
        }
        try:
            comm, about = self._client.sync(
                _send_request, worker, request, deserialize=False, **self._client.connection_args
            )
        except (OSError, TimeoutError) as error:
            raise LaunchError(
                f"{name}: its Dask worker {worker} cannot be reached: {error}"
            ) from None
        if "problem" in about:
            comm.abort()
            raise LaunchError(f"{name}: {about['problem']}.")
        return comm, about


def _probe(hosts: Sequence[HostLink]) -> None:
    """Connect each host to every other host, as ranks do. Raise LaunchError if a connection fails."""
    ports = [host.ask("listen") for host in hosts]
    at = [(host.address, _answer(host, port)) for host, port in zip(hosts, ports, strict=True)]
    asked = [host.ask("reach", others=at) for host in hosts]
    for host, reached in zip(hosts, asked, strict=True):
        for other, why in zip(hosts, _answer(host, reached), strict=True):
            if why:
                raise LaunchError(
                    f"{host.name} cannot connect to {other.name} ({other.address}, interface "
                    f"{other.interface}): {why}. Ranks need free TCP ports between the hosts: check the "
                    "firewall, or choose a different interface with hosts(..., interface=NAME)."
                )


def _answer(host: HostLink, reply_future: Any) -> Any:
    """Return a host's answer. Raise LaunchError, with the host's name, if there is none."""
    try:
        return wait_for_answer(reply_future)
    except Problem as problem:
        raise LaunchError(f"{host.name}: {problem}.") from None


def _check_scheduler(address: str) -> None:
    """Raise LaunchError if no Dask scheduler answers at an address.

    With the address of a different server, such as the scheduler's dashboard, a Client may wait forever for
    an answer, or interpret the first letters of the answer as a length and allocate that much memory.
    """

    async def identity() -> Any:
        from distributed.security import Security

        arguments = Security().get_connection_args("client")  # type: ignore[no-untyped-call]
        comm, answer = await _send_request(address, {"op": "identity", "reply": True}, **arguments)
        comm.abort()
        return answer

    with ThreadPoolExecutor(1) as pool:  # the notebook's thread already runs an event loop
        try:
            answer = pool.submit(asyncio.run, identity()).result()
        except Exception as error:  # Dask may raise any error for bytes from a different server
            answer = None
            # TimeoutError is an OSError, but it means that a server accepted the connection without
            # answering.
            if isinstance(error, OSError) and not isinstance(error, TimeoutError):
                raise LaunchError(f"no Dask scheduler answers at {address}: {error}") from None
    if not isinstance(answer, dict) or answer.get("type") != "Scheduler":
        raise LaunchError(
            f"the server at {address} is not a Dask scheduler, whose port is 8786 by default."
        )


async def _send_request(
    address: str, request: Mapping[str, Any], **arguments: Any
) -> tuple[Any, Any]:
    """Connect to one of Dask's processes and send a request. Return the connection and the answer."""
    from distributed.comm.core import connect

    async with asyncio.timeout(_ANSWER_S):
        comm = await connect(address, timeout=_CONNECT_S, **arguments)  # type: ignore[no-untyped-call]
        await comm.write(request)
        return comm, await comm.read()


def _order(name: object, address: str) -> tuple[int, Any, str]:
    """Return a sort key: the worker's name if it is a number, as with ssh and Slurm, or else the address."""
    if str(name).isdigit():
        return 0, int(str(name)), address
    host = host_in(address)
    with contextlib.suppress(ValueError):
        return 1, int(ipaddress.ip_address(host)), address
    return 2, 0, address


def _compare(versions_by_host: Mapping[str, Mapping[str, str]]) -> None:
    """Raise LaunchError if a host's versions differ from this process's, or if it has no torch."""
    for name, theirs in versions_by_host.items():
        for what, mine in versions().items():
            if not theirs.get(what):
                raise LaunchError(
                    f"{name} does not have {what}. Install the same version there as here, {mine}."
                )
            if theirs[what] != mine:
                raise LaunchError(
                    f"{name} has {what} {theirs[what]}, but this machine has {mine}. Ranks need the "
                    "same version everywhere."
                )
