"""What runs around the answers of notebook 20: replicas that meet at a store, stall, and are killed."""

from __future__ import annotations

import os
import random
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from helpers.checks.scripts import Source, compose, under_fork
from helpers.exercises.nb08_synchronous_sgd.in_ranks import lend

STORE_S = 3.0
"""How long a store waits for a key that nobody sets."""
SYNC_S = 6.0
IMPATIENT_S = 0.15
HELD_S = 0.4


@contextmanager
def store_of_its_own() -> Iterator[int]:
    """Serve a TCPStore in a process that no replica's death ends, as torchft's lighthouse does; give its port."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if not pid:
        try:
            store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
            theirs.sendall(str(store.port).encode())
            signal.pause()
        finally:
            os._exit(0)
    try:
        ours.settimeout(SYNC_S)
        yield int(ours.recv(16))
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        ours.close()
        theirs.close()


def connect(port: int) -> dist.Store:
    return dist.TCPStore("127.0.0.1", port, timeout=timedelta(seconds=STORE_S))


def start(
    answer: Source, programme: Callable[..., Any], replicas: int, given: Sequence[Any], dies: int
) -> dict[str, Any]:
    """Run a programme in each replica, beside a store. Replica `dies` is killed; the others go on."""
    with store_of_its_own() as port:
        script = compose(answer, programme, (port, *given))
        found = under_fork(script, replicas, timeout_s=15, others_go_on=True)
    if found["exits"].get(dies) == -signal.SIGKILL:
        found["exits"][dies] = 0
        found["values"][dies] = {"died": True}
    return found


# --- who is in ------------------------------------------------------------------------------------

WRITING = ("set", "add", "compare_set", "append")
FORWARDED = (*WRITING, "get", "check", "wait", "delete_key", "num_keys")


class FarStore(dist.Store):
    """A store each of whose calls takes a while.

    last: before its call of this number the process is killed. written: called before each call but the first
    that writes something.
    """

    def __init__(
        self, real: dist.Store, seed: int, last: int, written: Callable[[], None] | None
    ) -> None:
        super().__init__()
        self.real, self.rng, self.last, self.written = real, random.Random(seed), last, written
        self.calls = self.writes = 0

    def call(self, name: str, *given: Any, **named: Any) -> Any:
        self.calls += 1
        if self.calls == self.last:
            os.kill(os.getpid(), signal.SIGKILL)
        self.writes += name in WRITING
        if self.written is not None and name in WRITING and self.writes > 1:
            self.written()
        time.sleep(self.rng.random() * 0.008)
        texts = [_text(value) for value in given]
        return getattr(self.real, name)(*texts, **named)


def _forward(name: str) -> Callable[..., Any]:
    return lambda store, *given, **named: store.call(name, *given, **named)


for _name in FORWARDED:
    setattr(FarStore, _name, _forward(_name))


def _text(value: Any) -> Any:
    """Through a PrefixStore values come as bytes, which Python's side of a store does not take."""
    return value.decode() if isinstance(value, bytes) else value


def meet(
    answer: Source,
    rank: int,
    world_size: int,
    rounds: Sequence[Mapping[str, Any]],
    replicas: int,
    dies: tuple[int, int],
) -> dict[str, Any]:
    """Hold rounds of a quorum; in the last one replica dies[0] is killed before its call dies[1] of the store."""
    return start(answer, ask, replicas, (list(rounds), replicas, list(dies)), dies[0])


def ask(
    answer: Callable[..., Any],
    port: int,
    rounds: list[dict[str, Any]],
    replicas: int,
    dies: list[int],
) -> dict[str, Any]:
    """Take part in each round as this replica's role says. Times are of one clock for all processes."""
    me, told = int(os.environ["RANK"]), []
    store, own = connect(port), dist.PrefixStore("check", connect(port))
    for number, now in enumerate(rounds):
        role, last = now["roles"][me], number == len(rounds) - 1
        own.add(f"ready {number}", 1)
        _until(lambda n=number: int(own.add(f"ready {n}", 0)) >= replicas)
        if role == "absent":
            told.append(None)
            continue
        if role == "late":
            _until(lambda n=number: own.check([f"returned {n}"]))
        elif role == "on time" and "early" in now["roles"]:
            _until(lambda n=number: own.check([f"early {n}"]))
            time.sleep(0.1)
        elif role == "early":
            own.set(f"early {number}", "")
        elif role == "meanwhile":
            _until(lambda n=number: own.check([f"deciding {n}"]))
        deciding = partial(_others_decide, own, number) if role == "impatient" else None
        kill = dies[1] if last and me == dies[0] else 0
        far = FarStore(store, 10 * number + me, kill, deciding)
        patience = IMPATIENT_S if role == "impatient" else now["patience"]
        began = time.monotonic()
        got = answer(far, number, me, now["steps"][me], list(now["expected"]), replicas, patience)
        ended = time.monotonic()
        own.set(f"returned {number}", "")
        told.append([_plain(got), began, ended])
    return {"rounds": told}


def _others_decide(own: dist.Store, number: int) -> None:
    """Let the missing one come now, and the others decide, while this replica is about to write its decision."""
    own.set(f"deciding {number}", "")
    give_up = time.monotonic() + HELD_S
    while not own.check([f"returned {number}"]) and time.monotonic() < give_up:
        time.sleep(0.002)


def _plain(got: Any) -> Any:
    """Give a dict as a list of its pairs: keys of another type than int are to be seen."""
    return [[k, v] for k, v in got.items()] if isinstance(got, dict) else type(got).__name__


def _until(holds: Callable[[], bool]) -> None:
    give_up = time.monotonic() + SYNC_S
    while not holds() and time.monotonic() < give_up:
        time.sleep(0.002)


# --- taking over ----------------------------------------------------------------------------------


def small_model(seed: int, kind: str) -> nn.Module:
    """Make a model; "norm" has buffers, too."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if kind == "norm":
            return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
        return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def optimizer_of(model: nn.Module, kind: str) -> torch.optim.Optimizer:
    if kind == "AdamW":
        return torch.optim.AdamW(model.parameters(), lr=0.05)
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9 if kind == "momentum" else 0.0)


def backward(model: nn.Module, replica: int, step: int) -> None:
    """Make the gradients of one replica's batch in one step: another batch for each of both."""
    made = torch.Generator().manual_seed(1000 * replica + step)
    x = torch.randn(8, 3, generator=made)
    model.zero_grad()
    nn.functional.mse_loss(model(x), x.sum(1, keepdim=True).sin()).backward()


def trained(rank: int, steps: int, model_kind: str, kind: str) -> tuple[Any, Any]:
    """Give the model and the optimizer of a replica that has trained so many steps, by itself."""
    model = small_model(7 if steps else 100 + rank, model_kind)
    optimizer = optimizer_of(model, kind)
    for step in range(steps):
        backward(model, 0, step)
        optimizer.step()
    model.zero_grad()
    return model, optimizer


def states(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Give all that a step depends on, as plain tensors by name."""
    found: dict[str, Any] = {name: t.detach().clone() for name, t in model.state_dict().items()}
    for i, p in enumerate(p for group in optimizer.param_groups for p in group["params"]):
        for name, value in optimizer.state.get(p, {}).items():
            if value is not None:
                found[f"{name} of parameter {i}"] = torch.as_tensor(value).detach().clone()
    return found


def take_over(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    steps: list[int],
    model_kind: str,
    kind: str,
) -> dict[str, Any]:
    """Let the answer bring this rank to where the furthest one is, and train a step with what it has then."""
    model, optimizer = trained(rank, steps[rank], model_kind, kind)
    kept = list(model.parameters())
    step = answer(rank, world_size, list(steps), model, optimizer)
    found = states(model, optimizer)
    same = all(a is b for a, b in zip(kept, model.parameters(), strict=True))
    backward(model, 0, 99)
    optimizer.step()
    after = torch.cat([p.detach().flatten() for p in model.parameters()])
    return {
        "returned": step if isinstance(step, int) else type(step).__name__,
        "objects": same,
        "state": found,
        "after": after,
    }


# --- going on -------------------------------------------------------------------------------------


def quorum(
    store: dist.Store,
    number: int,
    me: int,
    step: int,
    expected: Sequence[int],
    replicas: int,
    patience: float,
) -> dict[int, int]:
    """Agree on who is in: a dict from each member to its step, the same for all who ask."""
    store.set(f"round {number}, replica {me}", str(step))

    def here() -> list[int]:
        return [r for r in range(replicas) if store.check([f"round {number}, replica {r}"])]

    decided, give_up = f"round {number}, decided", time.monotonic() + patience
    while not store.check([decided]) and time.monotonic() < give_up:
        if set(expected) <= set(here()):
            break
        time.sleep(0.005)
    mine = {r: int(store.get(f"round {number}, replica {r}")) for r in here()}
    said = store.compare_set(decided, "", repr(mine)).decode()
    pairs = (part.split(":") for part in said.strip("{}").split(","))
    return {int(r): int(s) for r, s in pairs}


def rejoin(
    rank: int,
    world_size: int,
    steps: Sequence[int],
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
) -> int:
    """Give every rank the state of the first one that has done most steps. Return how many."""
    most = max(steps)
    if min(steps) < most:
        source = list(steps).index(most)
        states: list[Any] = [None]
        if rank == source:
            states = [(model.state_dict(), optimizer.state_dict())]
        dist.broadcast_object_list(states, src=source)
        if steps[rank] < most:
            model.load_state_dict(states[0][0])
            optimizer.load_state_dict(states[0][1])
    return most


def join(store: dist.Store, number: int, members: Sequence[int], me: int, patience: float) -> None:
    """Leave the group that there is, and meet these members in a new one."""
    if dist.is_initialized():
        dist.destroy_process_group()
    dist.init_process_group(
        "gloo",
        store=dist.PrefixStore(f"group {number}", store),
        rank=list(members).index(me),
        world_size=len(members),
        timeout=timedelta(seconds=patience),
    )


def go_on(
    answer: Source,
    rank: int,
    world_size: int,
    replicas: int,
    steps: int,
    patience: float,
    event: Mapping[str, Any],
) -> dict[str, Any]:
    """Train; the event says who is killed, or stalls, at which moment, and whether a new one comes."""
    dies = -1 if event["what"] in ("nothing", "stalls") else event["replica"]
    return start(answer, replica, replicas, (replicas, steps, patience, dict(event)), dies)


def replica(
    answer: Callable[..., Any],
    port: int,
    replicas: int,
    steps: int,
    patience: float,
    event: dict[str, Any],
) -> dict[str, Any]:
    """Call the answer in a replica, which may be killed before, in or after its step, or stall."""
    for right in (quorum, rejoin, join):
        lend(right)
    me, store, folder = int(os.environ["RANK"]), connect(port), Path(sys.argv[0]).parent
    new = event["new"] if event["new"] >= 0 else replicas
    model = small_model(7 if me != new else 8, "plain")
    optimizer = optimizer_of(model, "momentum")
    gone, came = folder / "gone", folder / "came"
    happened = False
    if me == new:
        _until(gone.exists)
        came.touch()

    def end() -> None:
        gone.touch()
        os.kill(os.getpid(), signal.SIGKILL)

    def happens(moment: str, step: int) -> bool:
        nonlocal happened
        mine = not happened and me == event["replica"] and moment == event["what"]
        happened = happened or (mine and step == event["step"])
        return mine and happened

    def one_backward(step: int) -> None:
        if happens("killed before", step):
            end()
        if happens("stalls", step):
            time.sleep(3 * patience)
            came.touch()
        comes = new < replicas or (event["what"] == "stalls" and me != event["replica"])
        if comes and step == event["step"] + 2:
            _until(came.exists)
            time.sleep(0.15)  # it asks meanwhile
        backward(model, me, step)
        done[0] = step

    done = [-1]
    optimizer.register_step_pre_hook(lambda *_: end() if happens("killed in", done[0]) else None)
    optimizer.register_step_post_hook(
        lambda *_: end() if happens("killed after", done[0]) else None
    )
    log = answer(store, me, replicas, model, optimizer, one_backward, steps, patience)
    found = {
        "log": [[k, list(v)] for k, v in log.items() if isinstance(v, (list, tuple, dict, set))]
        if isinstance(log, dict)
        else type(log).__name__,
        "weights": torch.cat([p.detach().flatten() for p in model.parameters()]),
    }
    if dist.is_initialized():
        dist.destroy_process_group()
    return found
