"""Two hosts that are processes of this machine: they behave like a single machine."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from typing import Any

import psutil
import pytest
import torch
import torch.distributed as dist

from helpers import free_port, hosts, launch, timeline
from helpers.hosts.machines import Hosts
from helpers.ranks import magics
from helpers.ranks.failures import CannotSend, Deadlock, HostLost, LaunchError, RankFailed
from helpers.views.lanes import lanes_text
from tests.hosts.network import wait_until


@pytest.mark.extended
def test_places_ranks_like_torchrun(machines: Hosts) -> None:
    names = [
        "RANK",
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        "GROUP_RANK",
        "GROUP_WORLD_SIZE",
        "WORLD_SIZE",
    ]

    def who(rank: int, world_size: int) -> tuple[list[int], float, str]:
        total = torch.tensor(float(rank))
        dist.all_reduce(total)
        print(f"rank {rank}")
        return [int(os.environ[name]) for name in names], total.item(), os.environ["MASTER_ADDR"]

    with machines:
        run = launch(who, 3)
    assert run.hosts == ("host-0", "host-0", "host-1")
    assert [value[0] for value in run.values] == [
        [0, 0, 2, 0, 2, 3],
        [1, 1, 2, 0, 2, 3],
        [2, 0, 1, 1, 2, 3],
    ]
    assert {value[1:] for value in run.values} == {(3.0, "127.0.0.1")}
    assert run.output == ["rank 0\n", "rank 1\n", "rank 2\n"]
    assert [event.call for event in run.trace.events] == ["all_reduce"] * 3
    assert "host-0: ranks 0, 1; host-1: rank 2" in timeline(run).text
    lanes = [line for line in lanes_text(run).splitlines() if "→" not in line]
    assert lanes == ["host-0:", "rank 0 | rank 0", "rank 1 | rank 1", "host-1:", "rank 2 | rank 2"]
    assert launch(lambda rank, n: rank, 2).hosts == (), "the next one runs at home again"


def test_failures_report_rank_line_and_host(machines: Hosts) -> None:
    def fails(rank: int, world_size: int) -> None:
        if rank == 3:
            raise ValueError("not today")
        dist.barrier()

    with machines:
        run = launch(fails, 4, on_failure="return")
    assert isinstance(run.failure, RankFailed)
    assert run.failure.title == "rank 3 on host-1 raised ValueError: not today"
    assert 'raise ValueError("not today")' in str(run.failure)


def test_diagnoses_deadlock_between_hosts(machines: Hosts) -> None:
    def ring(rank: int, world_size: int) -> None:
        dist.recv(torch.zeros(1), (rank + 1) % world_size)

    with machines:
        run = launch(ring, 3, on_failure="return")
    assert isinstance(run.failure, Deadlock)
    assert run.failure.diagnosis.kind == "cycle"
    assert "rank 1 on host-0: recv of 1 float32 from rank 2" in str(run.failure)


def test_rank_output_arrives_in_order(machines: Hosts) -> None:
    def prints(rank: int, world_size: int) -> torch.Tensor:
        for i in range(3000):
            print(rank, i)
        return torch.full((1 << 18,), rank)

    with machines:
        run = launch(prints, 2)
    for rank in range(2):
        assert run.output[rank].splitlines() == [f"{rank} {i}" for i in range(3000)]
        assert (run.values[rank] == rank).all()


def test_host_survives_exited_rank(machines: Hosts) -> None:
    def leaves(rank: int, world_size: int) -> None:
        if rank == 0:
            os._exit(3)
        time.sleep(60)

    with machines:
        run = launch(leaves, 2, on_failure="return")
        assert "rank 0 on host-0 exited with code 3" in str(run.failure)
        assert launch(lambda rank, n: rank, 2).values == [0, 1]


@pytest.mark.extended
def test_lost_or_closed_hosts_restart_cleanly() -> None:
    def ends_the_server(rank: int, world_size: int) -> None:
        if rank == 0:
            os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)

    def is_closed(rank: int, world_size: int) -> None:
        time.sleep(60)

    new = "these are new ranks with nothing defined on them; the old ranks ended because"
    with hosts.local(2) as two:
        magics.run_cell(magics._CellOptions(2), "x = rank", "<cell>", {})
        run = launch(ends_the_server, 2, on_failure="return")
        assert isinstance(run.failure, HostLost) and run.failure.host == "host-0"
        assert launch(lambda rank, n: rank, 2).values == [0, 1]
        notes = magics.run_cell(magics._CellOptions(2), "x = rank", "<cell>", {}).notes
        assert notes == (f"{new} the host host-0 was lost",)

        closing = threading.Timer(1.0, two.servers().close)  # called by a different thread
        closing.start()
        run = launch(is_closed, 2, on_failure="return")
        closing.join()
        assert isinstance(run.failure, HostLost)
        assert run.failure.title.endswith(": the hosts were closed.")
        assert launch(lambda rank, n: rank, 2).values == [0, 1]
    notes = magics.run_cell(magics._CellOptions(2), "x = rank", "<cell>", {}).notes
    assert notes == (f"{new} they were on different machines",)


@pytest.mark.soak
def test_killed_worker_ends_ranks_and_returns() -> None:
    def waits(rank: int, world_size: int) -> None:
        if rank == 2:
            os.kill(_worker_of(os.getpid()), signal.SIGKILL)
            time.sleep(60)
        dist.barrier()

    with hosts.local(2) as two:
        run = launch(waits, 3, on_failure="return")
        assert isinstance(run.failure, HostLost)
        assert run.failure.title.startswith("lost host host-1 and its rank 2: ")
        wait_until(lambda: len(two._client.scheduler_info()["workers"]) == 2, 60)
        assert launch(lambda rank, n: rank, 2).hosts == ("host-0", "host-1"), "Dask's nanny"


@pytest.mark.soak
def test_reports_lost_scheduler_until_its_return() -> None:
    from distributed import LocalCluster

    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    machines = hosts(address)
    given: dict[str, Any] = {"n_workers": 1, "scheduler_port": port, "dashboard_address": ":0"}
    try:
        with LocalCluster(**given):
            machines.open()
            with machines:
                assert launch(lambda rank, n: rank, 2).values == [0, 1]
        with pytest.raises(LaunchError, match=f"no Dask scheduler answers at {address}"), machines:
            pass
        with LocalCluster(**given):
            machines.open()
            with machines:
                assert launch(lambda rank, n: rank, 2).values == [0, 1]
            machines.close()
    finally:
        machines.close()


@pytest.mark.soak
def test_recording_survives_ring_buffer_wrap(machines: Hosts) -> None:
    asked = magics._CellOptions(2)
    with machines:
        for _ in range(6):  # 32 MB of records for each rank hold some 400,000 spans
            many = (
                "from helpers import span\nfor _ in range(rank * 45_000):\n    with span('x'): pass"
            )
            assert len(magics.run_cell(asked, many, "<cell>", {}).trace.events) == 45_000
            one = magics.run_cell(asked, "dist.barrier()", "<cell>", {})
            assert [event.call for event in one.trace.events] == ["barrier"] * 2


@pytest.mark.soak
def test_endless_printing_fills_no_memory(machines: Hosts) -> None:
    asked, kernel = magics._CellOptions(2), psutil.Process()
    prints = "import threading\ndef talk():\n    while True: print('x' * 200)\n"
    with machines:
        magics.run_cell(asked, prints + "threading.Thread(target=talk).start()", "<cell>", {})
        before = kernel.memory_info().rss
        time.sleep(5)
        assert kernel.memory_info().rss - before < 60e6
        assert magics.run_cell(asked, "rank", "<cell>", {}).values == [0, 1]


def test_host_reports_exhausted_descriptors(machines: Hosts) -> None:
    def limit(most: int) -> tuple[int, int]:
        import resource

        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, before[1]))
        return before

    with machines:
        client = machines._client
        before = client.run(limit, 45)
        try:
            with pytest.raises(LaunchError, match="rank 0 could not be started: .*Too many open"):
                launch(lambda rank, n: rank, 40)
        finally:
            client.run(limit, min(most for most, _ in before.values()))
        assert launch(lambda rank, n: rank, 2).values == [0, 1]


def _worker_of(rank: int) -> int:
    """Return the Dask worker that has started a rank's server."""
    return int(psutil.Process(rank).parent().ppid())


@pytest.mark.extended
@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("tcp://no-such-host.invalid:8786", "there is no host called 'no-such-host.invalid'"),
        ("tcp://127.0.0.1:9", "no Dask scheduler answers at tcp://127.0.0.1:9"),
        ("n1", "'n1' is not the address of a Dask scheduler, which is tcp://HOST:PORT"),
        (["n1", "n2"], "['n1', 'n2'] is a list, but a name or an address must be a string"),
    ],
)
def test_wrong_address_error_fits_one_line(address: Any, says: str) -> None:
    start = time.monotonic()
    with pytest.raises(LaunchError) as raised, hosts(address):
        pass
    assert str(raised.value).startswith(says) and "\n" not in str(raised.value)
    print(f"{time.monotonic() - start:.1f} s: {raised.value}")


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        pytest.param(b"", marks=pytest.mark.soak, id="it waits for more"),
    ],
)
def test_reports_server_other_than_dask(answer: bytes) -> None:
    """For example, the port of the scheduler's dashboard, whose address `dask scheduler` also prints."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        accepting = threading.Thread(target=_accept, args=(server, answer), daemon=True)
        accepting.start()
        with pytest.raises(LaunchError, match=f"the server at {address} is not a Dask"):
            hosts(address).open()
        accepting.join(10)


def _accept(server: socket.socket, answer: bytes) -> None:
    with server.accept()[0] as client:
        client.sendall(answer)
        while client.recv(4096):
            pass


def test_refuses_non_positive_host_count() -> None:
    for count in (0, 2.5, "2"):
        with pytest.raises(LaunchError, match=f"at least 1; got {count!r}"):
            hosts.local(count)


def test_hosts_have_repr_and_refuse_sending(machines: Hosts) -> None:
    assert repr(machines) == "hosts: host-0, host-1 (open)"
    assert repr(hosts.local(2)) == "hosts (not open)"
    with pytest.raises(CannotSend, match="machines cannot be sent to the ranks: it is the hosts"):
        launch(lambda rank, n: machines, 2)
