"""Two learners on a hub: each has the features of `course lab`, and no access to the other's files."""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing

import psutil
import pytest

from helpers.answers.data import Answer
from helpers.answers.reader import read_answers
from helpers.course.look import KERNELS
from helpers.course.workspace import find_workspace
from helpers.room.store import Store
from tests.hub.people import Person
from tests.hub.running import Hub, processes_of, running_hub

NOTEBOOK = "04_collectives.ipynb"
CHECKED, BOARD_S = "broadcast_from", 60.0
SECRET = "what only ana's kernel prints"
START = """
from helpers import *
import torch, torch.distributed as dist, os, json
from pathlib import Path
run = launch(lambda rank, n: rank, 2)"""
LIVE = """%%ranks 2
import torch, torch.distributed as dist
total = torch.ones(1)
dist.all_reduce(total)
shared = torch.ones(100).share_memory_()
"""
# All of a learner's resources that another process could name.
OWN = """
from jupyter_core.paths import jupyter_runtime_dir
from helpers.ranks.launcher import current_connection
runtime, scratch = Path(jupyter_runtime_dir()), current_connection().site.scratch
print(json.dumps({
    "folders": [str(Path.cwd()), str(runtime), scratch, str(Path.home() / "real-ranks")],
    "files": [str(p) for f in (Path.cwd(), runtime) for p in f.iterdir() if p.is_file()]
    + [str(p) for p in Path("/dev/shm").iterdir() if p.stat().st_uid == os.getuid()],
    "connection": json.loads(Path(get_ipython().config["IPKernelApp"]["connection_file"]).read_text()),
}))"""
# Attempts of another user; all successful ones are listed.
ATTACK = """
import ctypes, os, signal
done = []
def attempt(what, do):
    try:
        do()
        done.append(what)
    except OSError:
        pass
def attach(pid):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(16, pid, 0, 0):
        raise OSError(ctypes.get_errno(), "ptrace")
for folder in FOLDERS:
    attempt(f"list {folder}", lambda: os.listdir(folder))
    attempt(f"write into {folder}", lambda: open(os.path.join(folder, "new"), "w"))
for file in FILES:
    attempt(f"read {file}", lambda: open(file, "rb"))
    attempt(f"write {file}", lambda: open(file, "ab"))
for pid in PIDS:
    attempt(f"signal {pid}", lambda: os.kill(pid, signal.SIGKILL))
    attempt(f"attach to {pid}", lambda: attach(pid))
    for name in ("environ", "mem", "maps", "stack"):
        attempt(f"read {name} of {pid}", lambda: open(f"/proc/{pid}/{name}", "rb").read(1))
    attempt(f"list descriptors of {pid}", lambda: os.listdir(f"/proc/{pid}/fd"))
print(done)"""
LISTEN = """
import zmq
heard = []
with zmq.Context() as context, context.socket(zmq.SUB) as sub:
    sub.subscribe(b"")
    sub.linger = 0
    sub.connect("tcp://127.0.0.1:PORT")
    while sub.poll(3000):
        heard.append(sub.recv())
print(heard)"""


@asynccontextmanager
async def learners(hub: Hub) -> AsyncIterator[list[Person]]:
    """Log in all learners and open a notebook."""
    people = [Person(hub, user) for user in hub.users]
    try:
        await asyncio.gather(*(person.log_in() for person in people))
        await asyncio.gather(*(person.open(NOTEBOOK) for person in people))
        yield people
    finally:
        for person in people:
            await person.close()


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_hub_isolates_two_learners() -> None:
    with running_hub(2) as hub:
        asyncio.run(_check_two_learners(hub))
        names = [user.name for user in hub.users]
    assert not [process for name in names for process in processes_of(name)]


async def _check_two_learners(hub: Hub) -> None:
    async with learners(hub) as (ana, ben):
        for person in (ana, ben):
            await person.value(START)
            await person.value(LIVE)
        await _check_course_lab_features(ana)
        await _check_room_membership(ana, hub)
        await _check_isolation(ana, ben)
        await _check_private_output(ana, ben)
        await _check_foreign_bytes_change_nothing(ana, ben)
        assert await ana.value("%%ranks\ntotal.item()") == "rank 0 → 2.0\nrank 1 → 2.0\n"


async def _check_course_lab_features(ana: Person) -> None:
    home = json.loads((await ana.ask(f"{ana.server}/api/contents/real-ranks")).body)
    names = {entry["name"] for entry in home["content"]}
    assert {"home.ipynb", NOTEBOOK} <= names and len(names) >= 25
    page = (await ana.ask(f"{ana.server}/lab/tree/real-ranks/home.ipynb")).body.decode()
    assert "realRanksMap" in page and "custom/custom.css" in page
    assert "of 24 notebooks done" in (await ana.ask(f"{ana.server}/real-ranks/map")).body.decode()
    style = (await ana.ask(f"{ana.server}/custom/custom.css")).body.decode()
    assert style == (KERNELS.parent / "look" / "custom.css").read_text()
    assert "announcements" in page
    (server,) = [
        p for p in processes_of(ana.user.name) if p.name() == "rank server" and _is_first(p)
    ]
    assert server.ppid() in {p.pid for p in processes_of(ana.user.name)}


async def _check_room_membership(ana: Person, hub: Hub) -> None:
    """A learner's check reaches the board, which runs as a user without other files."""
    if importlib.util.find_spec("uvicorn") is None:
        return
    assert ": passed\n" in await ana.value(f"{answer_to(CHECKED)}\nprint(check({CHECKED}))")
    deadline = time.monotonic() + BOARD_S
    with closing(Store(hub.board)) as store:
        while not (happened := store.stored_events()):
            assert time.monotonic() < deadline, hub.log.read_text()[-4000:]
            await asyncio.sleep(0.2)
        assert [each.event.exercise for each in happened] == [CHECKED]
        assert [each.name for each in store.learners()] == [ana.user.name]
    assert [p for p in processes_of("nobody") if str(hub.board) in p.cmdline()]


def answer_to(exercise: str) -> str:
    """Return the reference solution of an exercise of the open notebook."""
    answer = read_answers(find_workspace().solutions / NOTEBOOK, [exercise])[exercise]
    assert isinstance(answer, Answer)
    return answer.source


def _is_first(process: psutil.Process) -> bool:
    parent = process.parent()
    return parent is None or parent.name() != "rank server"


async def _check_isolation(ana: Person, ben: Person) -> None:
    own = json.loads(await ana.value(OWN))
    pids = [process.pid for process in processes_of(ana.user.name)]
    assert len(pids) >= 5 and len(own["files"]) >= 25
    names = f"FOLDERS, FILES, PIDS = {own['folders']!r}, {own['files']!r}, {pids!r}"
    assert await ben.value(f"{names}\n{ATTACK}") == "[]\n"
    # The same attempts succeed for the owner, which proves that they are valid.
    tried = f"{names}\nPIDS = []\n{ATTACK.replace('ab', 'rb')}"
    assert len(ast.literal_eval(await ana.value(tried))) >= len(own["files"])
    for path in ("api/contents/real-ranks", "api/kernels", "real-ranks/map", "api/shutdown"):
        method = "POST" if path == "api/shutdown" else "GET"
        assert (await ben.ask(f"{ana.server}/{path}", method)).code in (302, 403, 404)
        direct = f"http://127.0.0.1:{_port_of(ana)}/user/{ana.user.name}/{path}"
        assert (await ben.ask(direct, method)).code in (302, 403)


def _port_of(person: Person) -> int:
    """Return the port of a person's server, to which any user of the machine can connect."""
    (server,) = [p for p in processes_of(person.user.name) if "singleuser" in " ".join(p.cmdline())]
    return next(c.laddr.port for c in server.net_connections("tcp") if c.status == "LISTEN")


async def _check_private_output(ana: Person, ben: Person) -> None:
    """Normally everybody who connects to a kernel's port receives its output, but here they need its keys."""
    own = json.loads(await ana.value(OWN))["connection"]
    listening = asyncio.create_task(ben.value(LISTEN.replace("PORT", str(own["iopub_port"]))))
    await asyncio.sleep(1.0)
    await ana.value(f"print({SECRET!r})")
    assert await listening == "[]\n"


async def _check_foreign_bytes_change_nothing(ana: Person, ben: Person) -> None:
    """gloo's ports are open to all users of the machine, but a stranger's bytes change no result."""
    ranks = [p for p in processes_of(ana.user.name) if not _is_first(p)]
    ports = [c.laddr.port for p in ranks for c in p.net_connections("tcp") if c.status == "LISTEN"]
    knock = f"""
import socket
for port in {ports}:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as s:
            s.sendall(bytes(64))
            s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n" * 50)
    except OSError:
        pass
print(len({ports}))"""
    await ben.value(knock)
    again = "%%ranks\nagain = torch.ones(1)\ndist.all_reduce(again)\nagain.item()"
    assert await ana.value(again) == "rank 0 → 2.0\nrank 1 → 2.0\n"
