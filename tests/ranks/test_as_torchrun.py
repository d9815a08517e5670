"""A rank's setup and end are those of a process under torchrun."""

from __future__ import annotations

import atexit
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist

from helpers.ranks.failures import LaunchError, RankFailed
from helpers.ranks.launch_options import Options
from helpers.ranks.launcher import launch, run_on_ranks

NOT_HERE = {
    "TORCHELASTIC_ERROR_FILE",
    "TORCHELASTIC_SIGNALS_TO_HANDLE",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING",  # also torch's default
}


@pytest.mark.extended
def test_rank_environment_matches_torchrun(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        f"import os; open({str(tmp_path)!r} + '/' + os.environ['RANK'], 'w').write(str(dict(os.environ)))"
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", str(script)]
    # With this variable, torchrun's agent serves no store for the ranks, just as in the course.
    env = {**os.environ, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    rendezvous = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--rdzv-id", "none"]
    subprocess.run(
        [*command[:3], *rendezvous, *command[3:]], check=True, capture_output=True, env=env
    )
    theirs = [eval((tmp_path / str(rank)).read_text()) for rank in range(2)]
    ours = launch(lambda rank, n: dict(os.environ), 2).values
    assert ours == [{**o, "MASTER_PORT": ours[0]["MASTER_PORT"]} for o in ours]
    own = {name for name in theirs[0] if name not in os.environ} - NOT_HERE - {"LC_CTYPE"}
    own -= {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "MASTER_ADDR"}  # torchrun: this machine's name
    assert {"TORCHELASTIC_USE_AGENT_STORE", "RANK", "ROLE_RANK", "GROUP_RANK", "MASTER_PORT"} <= own
    for rank in range(2):
        for name in own - {"MASTER_PORT"}:
            assert ours[rank][name] == theirs[rank][name], name


def test_ranks_inherit_notebook_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", "gone soon")
    launch(lambda rank, n: rank, 1)
    monkeypatch.setenv("MINE", "1")
    monkeypatch.setenv("MASTER_PORT", "29500")  # a tutorial's first cell; torchrun overwrites it
    monkeypatch.delenv("PATH")

    def read(rank: int, n: int) -> tuple[object, ...]:
        return os.environ.get("MINE"), os.environ["MASTER_PORT"] != "29500", "PATH" in os.environ

    assert launch(read, 1).values == [("1", True, False)]
    assert launch(lambda rank, n: os.environ["MINE"], 1, env={"MINE": "2"}).values == ["2"]


def joined(rank: int, world_size: int) -> float:
    one = torch.ones(1)
    dist.all_reduce(one)
    return float(one)


def again(rank: int, world_size: int) -> float:
    for _ in range(4):
        dist.init_process_group("gloo")
        dist.destroy_process_group()
    dist.init_process_group("gloo")
    return joined(rank, world_size)


@pytest.mark.extended
@pytest.mark.parametrize("trace", [True, False])
def test_recreates_group_repeatedly(trace: bool) -> None:
    for _ in range(5):
        assert launch(again, 4, init=False, trace=trace).values == [4.0] * 4


@pytest.mark.extended
def test_recreates_group_joined_by_launch() -> None:
    def first_lines(rank: int, world_size: int) -> float:
        dist.destroy_process_group()
        dist.init_process_group("gloo")
        return joined(rank, world_size)

    for _ in range(10):
        assert launch(first_lines, 6).values == [6.0] * 6


JOINING = """
import os, sys, time
from pathlib import Path
from helpers.ranks.worker import _wait_until_all_joined

folder, rank = Path(sys.argv[1]), 0
while rank < 3 and os.fork() == 0:
    rank += 1
with _wait_until_all_joined(str(folder / "joining")):
    (folder / f"{rank}.come").touch()
    while len(list(folder.glob("*.come"))) < 4:  # as gloo: nobody is through before all have come
        time.sleep(0.01)
    time.sleep(0.1 * rank)
    through = time.monotonic()
(folder / f"{rank}.times").write_text(f"{through} {time.monotonic()}")
if rank < 3:
    os.wait()
"""


def test_ranks_continue_only_after_all_join(tmp_path: Path) -> None:
    """As long as the last rank is still connecting by gloo, its peers must not close their connections."""
    subprocess.run([sys.executable, "-c", JOINING, str(tmp_path)], check=True, timeout=60)
    times = [tuple(map(float, path.read_text().split())) for path in tmp_path.glob("*.times")]
    assert len(times) == 4
    assert min(gone for _, gone in times) >= max(through for through, _ in times)


@pytest.mark.extended
def test_late_rank_finds_next_rendezvous_store() -> None:
    def late(rank: int, world_size: int) -> float:
        dist.init_process_group("gloo")
        if rank == 0:  # others are in the next rendezvous while rank 0's group still exists
            time.sleep(0.2)
        dist.destroy_process_group()
        dist.init_process_group("gloo")
        return joined(rank, world_size)

    assert launch(late, 3, init=False).values == [3.0] * 3


@pytest.mark.extended
def test_all_ranks_rejoin_after_smaller_group() -> None:
    def shrink(rank: int, world_size: int) -> float:
        dist.init_process_group("gloo")
        dist.destroy_process_group()
        if rank < 2:
            dist.init_process_group("gloo", rank=rank, world_size=2)
            joined(rank, 2)
            dist.destroy_process_group()
        dist.init_process_group("gloo")
        return joined(rank, world_size)

    assert launch(shrink, 3, init=False).values == [3.0] * 3


def test_creates_mesh_without_group() -> None:
    def mesh(rank: int, world_size: int) -> tuple[int, ...]:
        from torch.distributed.device_mesh import init_device_mesh

        made = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        return tuple(made.get_coordinate() or ())

    assert launch(mesh, 4, init=False).values == [(0, 0), (0, 1), (1, 0), (1, 1)]


@pytest.mark.extended
def test_joins_at_custom_address_or_store() -> None:
    def setup(rank: int, world_size: int) -> float:
        url = f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        for _ in range(3):
            dist.init_process_group("gloo", init_method=url, rank=rank, world_size=world_size)
            dist.destroy_process_group()
        store = dist.FileStore(f"{tempfile.gettempdir()}/{os.environ['MASTER_PORT']}", world_size)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size)
        return joined(rank, world_size)

    assert launch(setup, 2, init=False).values == [2.0] * 2


def test_two_launches_have_different_ports() -> None:
    def port(rank: int, world_size: int) -> str:
        dist.init_process_group("gloo")
        return os.environ["MASTER_PORT"]

    assert len({launch(port, 2, init=False).values[0] for _ in range(3)}) == 3


def test_reserves_world_port() -> None:
    def take(rank: int, world_size: int) -> str:
        import socket

        with socket.socket() as other:
            try:
                other.bind(("127.0.0.1", int(os.environ["MASTER_PORT"])))
            except OSError as error:
                return str(error.strerror)
        return "taken"

    assert launch(take, 1, init=False).values == ["Address already in use"]


def test_unseeded_ranks_draw_different_numbers() -> None:
    def draw(rank: int, world_size: int) -> tuple[float, ...]:
        layer = torch.nn.Linear(1, 1)
        return float(layer.weight), float(torch.rand(1)), random.random(), float(np.random.rand())

    def seeded(rank: int, world_size: int) -> tuple[float, ...]:
        torch.manual_seed(1)
        random.seed(1)
        np.random.seed(1)
        return draw(rank, world_size)

    drawn = [*launch(draw, 2).values, *launch(draw, 2).values]
    for column in zip(*drawn, strict=True):
        assert len(set(column)) == 4
    assert len(set(launch(seeded, 2).values + launch(seeded, 2).values)) == 1


def test_ranks_and_launches_share_temporary_files() -> None:
    name = f"kept-{os.getpid()}-{time.monotonic_ns()}"

    def save(rank: int, world_size: int) -> str:
        path = Path(tempfile.gettempdir(), name)
        if rank == 0:
            path.write_text("kept")
        dist.barrier()
        return path.read_text()

    path = Path(tempfile.gettempdir(), name)
    try:
        assert launch(save, 2).values == ["kept", "kept"]
        assert launch(lambda rank, n: path.read_text(), 1).values == ["kept"]
    finally:
        path.unlink()


def test_check_worlds_remove_temporary_files() -> None:
    def save(rank: int, world_size: int) -> tuple[str, list[str]]:
        folder = Path(tempfile.gettempdir())
        dist.barrier()  # the first gettempdir() of each process tests whether the folder is writable
        found = [path.name for path in folder.iterdir()]
        dist.barrier()
        (folder / f"{rank}").write_text("mine")
        return str(folder), found

    first, second = (run_on_ranks(save, Options(2)).values for _ in range(2))
    assert first[0] == first[1] and first[0] != second[0]
    assert [found for _, found in [*first, *second]] == [[], [], [], []]
    deadline = time.monotonic() + 5  # successful ranks exit in the background
    while Path(first[0][0]).exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_runs_exit_handlers_of_rank() -> None:
    class Thing:
        pass

    def leave(rank: int, world_size: int) -> str:
        atexit.register(print, "first registered, last run")
        atexit.register(dist.destroy_process_group)
        atexit.register(lambda: print("still joined:", dist.is_initialized()))
        warnings.thing = Thing()  # type: ignore[attr-defined]
        weakref.finalize(warnings.thing, print, "finalized")  # type: ignore[attr-defined]
        threading.Thread(target=lambda: (time.sleep(0.1), print("the thread's"))).start()
        pool = ThreadPoolExecutor()
        pool.submit(lambda: (time.sleep(0.2), print("the pool's")))
        return "value"

    run = launch(leave, 2)
    assert run.values == ["value", "value"]
    said = [
        "the thread's",
        "the pool's",
        "still joined: True",
        "first registered, last run",
        "finalized",
    ]
    assert [output.splitlines() for output in run.output] == [said, said]


def test_ranks_skip_server_exit_handlers() -> None:
    assert launch(lambda rank, n: atexit._ncallbacks(), 1).values[0] <= 2


def test_removes_socket_folder_of_rank() -> None:
    def folder(rank: int, world_size: int) -> str:
        from multiprocessing.util import get_temp_dir

        return str(get_temp_dir())

    first, second = launch(folder, 2).values
    assert first != second
    deadline = time.monotonic() + 5  # successful ranks exit in the background
    while Path(first).exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_shows_exception_notes_and_causes() -> None:
    def fail(rank: int, world_size: int) -> None:
        error = ValueError("wrong")
        error.add_note("in the third file")
        raise error from KeyError("x")

    with pytest.raises(
        RankFailed, match="(?s)wrong\nin the third file\n.*because of KeyError: 'x'"
    ):
        launch(fail, 1)


def second_init(rank: int, world_size: int) -> None:
    dist.init_process_group("gloo")


def takes_nothing() -> None:
    pass


def takes_one(rank: int) -> None:
    pass


def yields(rank: int, world_size: int) -> object:
    yield rank


async def is_async(rank: int, world_size: int) -> None:
    pass


@pytest.mark.parametrize(
    ("fn", "says"),
    [
        (second_init, r"leave out init_process_group\(...\).*launch\(..., init=False\)"),
        (lambda rank, n: breakpoint(), "no stdin, so a debugger cannot prompt"),
        (lambda rank, n: input("how many? "), "Call input.* in the notebook"),
        (
            lambda rank, n: (dist.destroy_process_group(), dist.barrier()),
            r"The process group is not initialized here. With launch\(..., init=False\)",
        ),
    ],
)
def test_advises_on_errors_without_remedy(fn: object, says: str) -> None:
    with pytest.raises(RankFailed, match=f"(?s){says}"):
        launch(fn, 2)  # type: ignore[arg-type]


def test_reports_port_in_use() -> None:
    import socket

    with socket.socket() as other:
        other.bind(("0.0.0.0", 0))
        other.listen()
        port = other.getsockname()[1]

        def serve(rank: int, world_size: int) -> None:
            dist.TCPStore("127.0.0.1", port, 1, is_master=True, use_libuv=True)

        with pytest.raises(RankFailed, match=r"os.environ\['MASTER_PORT'\]"):
            launch(serve, 1)


@pytest.mark.parametrize(
    ("fn", "says"),
    [
        (
            takes_nothing,
            r"calls takes_nothing\(rank, world_size\).*Write def takes_nothing\(rank, world",
        ),
        (takes_one, r"takes_one\(rank: 'int'\).*too many positional arguments"),
        (yields, "contains a `yield`"),
        (is_async, r"asyncio.run\(is_async"),
    ],
)
def test_rejects_uncallable_functions(fn: object, says: str) -> None:
    with pytest.raises(LaunchError, match=says):
        launch(fn, 2)  # type: ignore[arg-type]


def test_rejects_surplus_function_arguments() -> None:
    with pytest.raises(
        LaunchError, match=r"calls joined\(rank, world_size, args\[0\]\), but it is"
    ):
        launch(joined, 2, args=(1,))


@pytest.mark.parametrize("shared", [threading.Lock(), threading.Event()])
def test_refuses_lock_as_argument(shared: object) -> None:
    with pytest.raises(LaunchError, match=r"args\[0\] cannot be sent.* Ranks are processes"):
        launch(lambda rank, n, lock: None, 2, args=(shared,))
