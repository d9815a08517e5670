"""What runs around the answers of notebook 20: replicas that meet at a store, stall, and are killed."""

from __future__ import annotations

import os
import random
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch._C._distributed_c10d import PrefixStore, Store, TCPStore

from helpers.checks.lend import lend
from helpers.checks.script_worker import ask as ask_starter
from helpers.checks.scripts import Instead, Referee, Source, compose, under_fork
from helpers.ranks.processes import end_with_parent

STORE_S = 2.0
"""How long a store waits for a key that nobody sets."""
SYNC_S = 4.0
WHOLE_S = 10.0
"""Of processor time, for all replicas of a case."""
IMPATIENT_S = 0.15
HELD_S = 0.4
LATE_PATIENCE_S = 3.0
"""Of a replica that asks after the decision: long enough to tell a wait from an answer at once."""
DELAYS = {"second": 0.7, "straggler": 1.35, "slow": 2.5}
"""How many times `patience` a replica comes after the first one."""


@contextmanager
def store_of_its_own() -> Iterator[int]:
    """Serve a TCPStore in a process that no replica's death ends; give its port."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if not pid:
        end_with_parent()
        try:
            store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
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


def connect(port: int) -> TCPStore:
    return TCPStore("127.0.0.1", port, timeout=timedelta(seconds=STORE_S))


def start(script: Path, replicas: int, referee: Referee, dies: int) -> dict[str, Any]:
    """Run a script in each replica. Replica `dies` may be killed by the referee; the others go on.

    Whether it was killed says the process that starts the replicas, and not what is left of that one.
    """
    found = under_fork(script, replicas, timeout_s=WHOLE_S, others_go_on=True, referee=referee)
    if dies in found["killed"][0]:
        found["exits"][dies] = 0
        found["values"][dies] = {"killed": True}
    return found


# --- who is in ------------------------------------------------------------------------------------

OWN = "check"
"""What the keys begin with that the check sets for itself."""
WRITING = ("set", "add", "compare_set", "append")
FORWARDED = (*WRITING, "get", "check", "wait", "delete_key", "num_keys")


class FarStore(Store):
    """A store each of whose calls takes a while, up to `slow` seconds.

    number: of the round. Writes are made by the process that started this one, which may kill it before one.
    written: called before each write but one.
    """

    def __init__(
        self,
        real: Store,
        seed: int,
        number: int,
        slow: float,
        written: Callable[[], None] | None,
    ) -> None:
        super().__init__()
        self.real, self.rng, self.written = real, random.Random(seed), written
        self.number, self.slow = number, slow
        self.writes = 0

    def call(self, name: str, *given: Any, **named: Any) -> Any:
        self.writes += name in WRITING
        if self.written is not None and name in WRITING and self.writes > 1:
            self.written()
        time.sleep(self.rng.random() * self.slow)
        texts = [_text(value) for value in given]
        if name in WRITING:
            kind, found = ask_starter(self.number, name, texts, named)
            return found.encode() if kind == "bytes" else found
        return getattr(self.real, name)(*texts, **named)


def _forward(name: str) -> Callable[..., Any]:
    return lambda store, *given, **named: store.call(name, *given, **named)


for _name in FORWARDED:
    setattr(FarStore, _name, _forward(_name))


def _text(value: Any) -> Any:
    """Through a PrefixStore values come as bytes, which Python's side of a store does not take."""
    return value.decode() if isinstance(value, bytes) else value


class Writer(Referee):
    """Makes the writes of all replicas, and kills one before a write of its last round.

    So it knows which keys the replicas have set, and a key that it does not know was set past it. An answer
    can make more writes than it needs, and so be killed at another moment of its own; it cannot be killed
    without having made those before.
    """

    def __init__(self, store: TCPStore, dies: Sequence[int], last_round: int) -> None:
        self.store, self.last_round = store, last_round
        self.replica, self.last = dies
        self.count = 0
        self.keys: set[str] = set()

    def answer(self, rank: int, question: list[Any]) -> Any:
        number, name, texts, named = question
        if name not in WRITING:
            return None
        if rank == self.replica and number == self.last_round:
            self.count += 1
            if self.count == self.last:
                return Instead.KILL
        self.keys.add(str([*texts, *named.values()][0]))
        found = getattr(self.store, name)(*texts, **named)
        return ["bytes", found.decode()] if isinstance(found, bytes) else ["", found]

    def unknown_keys(self) -> list[str]:
        """Give the keys in the store that neither the replicas have set here nor the check itself."""
        there = {key for key in self.store.list_keys() if not key.startswith(f"{OWN}/")}
        return sorted(there - self.keys)


def meet(
    answer: Source,
    rank: int,
    world_size: int,
    rounds: Sequence[Mapping[str, Any]],
    replicas: int,
    dies: tuple[int, int],
) -> dict[str, Any]:
    """Hold rounds of a quorum; in the last, replica dies[0] is killed before its write dies[1]."""
    with store_of_its_own() as port:
        script = compose(answer, take_part, (port, list(rounds), replicas, dies[0]))
        writer = Writer(connect(port), dies, len(rounds) - 1)
        found = start(script, replicas, writer, dies[0])
        unknown = writer.unknown_keys()
    values = [{**v, "unknown": unknown} if isinstance(v, dict) else v for v in found["values"]]
    return {**found, "values": values}


def take_part(
    answer: Callable[..., Any],
    port: int,
    rounds: list[dict[str, Any]],
    replicas: int,
    dies: int,
) -> dict[str, Any]:
    """Take part in each round as this replica's role says. Times are of one clock for all processes."""
    me = int(os.environ["RANK"])
    decided: list[Any] = []
    times: list[list[float]] = []
    store, own = connect(port), PrefixStore(OWN, connect(port))
    for number, now in enumerate(rounds):
        role, last = now["roles"][me], number == len(rounds) - 1
        own.add(f"ready {number}", 1)
        _until(partial(_have_come, own, f"ready {number}", replicas))
        if role == "absent":
            decided.append(None)
            times.append([])
            continue
        if role == "late":
            _until(partial(own.check, [f"returned {number}"]))
        elif role == "on time" and "early" in now["roles"]:
            _until(partial(own.check, [f"early {number}"]))
            time.sleep(0.1)
        elif role == "early":
            own.set(f"early {number}", "")
        elif role == "meanwhile":
            _until(partial(own.check, [f"deciding {number}"]))
        elif role in DELAYS:
            time.sleep(DELAYS[role] * now["patience"])
        deciding = partial(_others_decide, own, number) if role == "impatient" else None
        # who is to be killed is ahead of the others: so it is killed while they count on it
        is_ahead = last and me == dies
        slow = 0.001 if is_ahead else 0.02 if last and dies >= 0 else 0.008
        far = FarStore(store, 10 * number + me, number, slow, deciding)
        patience = {"impatient": IMPATIENT_S, "late": LATE_PATIENCE_S}.get(role, now["patience"])
        began = time.monotonic()
        got = answer(far, number, me, now["steps"][me], list(now["expected"]), replicas, patience)
        ended = time.monotonic()
        own.set(f"returned {number}", "")
        decided.append(_plain(got))
        times.append([began, ended])
    return {"decided": decided, "times": times}


def _others_decide(own: Store, number: int) -> None:
    """While this replica is about to write its decision, let the missing one come and the others decide."""
    own.set(f"deciding {number}", "")
    give_up = time.monotonic() + HELD_S
    while not own.check([f"returned {number}"]) and time.monotonic() < give_up:
        time.sleep(0.002)


def _plain(got: Any) -> Any:
    """Give a dict of ints as it is; of what else it holds, or is, a few words."""
    if isinstance(got, dict) and all(type(n) is int for pair in got.items() for n in pair):
        return got
    return (
        f"a dict of other things than ints: {got}" if isinstance(got, dict) else type(got).__name__
    )


def _have_come(own: Store, key: str, count: int) -> bool:
    return int(own.add(key, 0)) >= count


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
    model = small_model(7 if steps > 0 else 100 + rank, model_kind)
    optimizer = optimizer_of(model, kind)
    for step in range(steps):
        backward(model, 0, step)
        optimizer.step()
    model.zero_grad()
    for group in optimizer.param_groups:  # as a scheduler does
        group["lr"] *= 0.9 ** max(steps, 0)
    return model, optimizer


def states(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Give all that a step depends on, as plain tensors by name."""
    found: dict[str, Any] = {name: t.detach().clone() for name, t in model.state_dict().items()}
    found["the learning rate"] = torch.tensor(optimizer.param_groups[0]["lr"])
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
        "returned": step if isinstance(step, int) else f"a {type(step).__name__}",
        "objects": same,
        "state": found,
        "after": after,
    }


# --- going on -------------------------------------------------------------------------------------


def quorum(
    store: Store,
    number: int,
    me: int,
    step: int,
    expected: Sequence[int],
    replicas: int,
    patience: float,
) -> dict[int, int]:
    """Agree on who is in: a dict from each member to its step, the same for all who ask."""

    def key(about: object, of: int = number) -> str:
        return f"round {of}, {about}"

    def decision(of: int) -> dict[int, int]:
        pairs = (
            part.split(":") for part in store.get(key("decided", of)).decode()[1:-1].split(",")
        )
        return {int(r): int(s) for r, s in pairs}

    store.set(key(f"replica {me}"), str(step))
    give_up = time.monotonic() + patience
    newest = max(decision(number - 1).values()) if store.check([key("decided", number - 1)]) else -1
    while not store.check([key("decided")]):
        here = [r for r in range(replicas) if store.check([key(f"replica {r}")])]
        mine = {r: int(store.get(key(f"replica {r}"))) for r in here}
        enough = set(expected) <= set(here) or time.monotonic() > give_up
        if enough and max(mine.values()) >= newest:
            store.compare_set(key("decided"), "", repr(mine))
        else:
            time.sleep(0.005)
    return decision(number)


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


def join(store: Store, number: int, members: Sequence[int], me: int, patience: float) -> None:
    """Leave the group that there is, and meet these members in a new one."""
    if dist.is_initialized():
        dist.destroy_process_group()
    # groups are named by how many there have been, and one that failed to meet counts, on some ranks only
    dist.distributed_c10d._world.group_count = 0
    dist.init_process_group(
        "gloo",
        store=PrefixStore(f"group {number}", store),
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
    """Train; the event says what happens to whom, in which step, and whether a new one comes."""
    dies = event["replica"] if event["what"].startswith("killed") else -1
    with store_of_its_own() as port:
        script = compose(answer, replica, (port, replicas, steps, patience, dict(event)))
        return start(script, replicas, Moment(event, script.parent / "gone"), dies)


class Moment(Referee):
    """Kills a replica at the moment that the event names, if the others have come as far."""

    def __init__(self, event: Mapping[str, Any], gone: Path) -> None:
        self.event, self.gone = event, gone
        self.begun: dict[int, int] = {}

    def answer(self, rank: int, question: list[Any]) -> Any:
        kind, what, step = question
        if kind == "begins":
            self.begun[rank] = max(self.begun.get(rank, -1), int(step))
            return None
        others = max((k for r, k in self.begun.items() if r != rank), default=-1)
        planned = (self.event["replica"], self.event["what"], self.event["step"])
        if (rank, what, step) != planned or others < step - 1:
            return None
        self.gone.touch()
        return Instead.KILL


def replica(
    answer: Callable[..., Any],
    port: int,
    replicas: int,
    steps: int,
    patience: float,
    event: dict[str, Any],
) -> dict[str, Any]:
    """Call the answer in a replica, to which the event happens."""
    for right in (quorum, rejoin, join):
        lend(right)
    me, store = int(os.environ["RANK"]), connect(port)
    new = event["new"] == me
    model = small_model(8 if new else 7, "plain")
    optimizer = optimizer_of(model, "momentum")
    scene = Scene(me, event, patience, Path(sys.argv[0]).parent)
    scene.watch(optimizer)
    if new:
        _until(scene.gone.exists)
        scene.came.touch()
    else:  # all at once: nobody's patience is for how long a process takes to start
        own = PrefixStore(OWN, store)
        own.add("here", 1)
        _until(partial(_have_come, own, "here", replicas - (event["new"] >= 0)))

    def one_backward(step: int) -> None:
        scene.before(step)
        backward(model, me, step)

    log = answer(store, me, replicas, model, optimizer, one_backward, steps, patience)
    found = {
        "log": {int(k): list(v) for k, v in log.items()}
        if isinstance(log, dict)
        and all(isinstance(v, (list, tuple, dict, set)) for v in log.values())
        else type(log).__name__,
        "weights": torch.cat([p.detach().flatten() for p in model.parameters()]),
        "times": scene.times,
    }
    if dist.is_initialized():
        dist.destroy_process_group()
    return found


class Scene:
    """Makes happen to one replica what the event says, once, in its step.

    killed before, killed in, killed after: its gradients, the step of its optimizer, and that step's end.
    killed meeting: when it joins the group for the first time after the step. stalls: before its gradients.
    hold: how many times `patience` the step takes when it is made once more.
    steps alone: on all others the step's all_reduce fails, on this one it ends well; `stall` then says how
    many times the others' patience it stalls after its step.
    """

    def __init__(self, me: int, event: dict[str, Any], patience: float, folder: Path) -> None:
        self.me, self.event, self.patience = me, event, patience
        self.gone, self.came = folder / "gone", folder / "came"
        self.step, self.calls, self.usual, self.happened = -1, 0, 0, False
        self.times: list[float] = []
        self.begun: Counter[int] = Counter()

    def watch(self, optimizer: torch.optim.Optimizer) -> None:
        """Put the scene around the optimizer and the calls of torch.distributed."""

        def steps(*_: Any) -> None:
            self.moment("killed in")

        optimizer.register_step_pre_hook(steps)
        optimizer.register_step_post_hook(lambda *_: self.after())
        init: Any = dist.init_process_group
        reduce: Any = dist.all_reduce

        def joining(*args: Any, **kwargs: Any) -> Any:
            if self.step >= self.event["step"] - 1:
                self.moment("killed meeting", at_once=True)
            return init(*args, **kwargs)

        def reducing(*args: Any, **kwargs: Any) -> Any:
            found = reduce(*args, **kwargs)
            self.calls += 1
            alone = self.event["what"] == "steps alone" and self.me != self.event["replica"]
            last = self.calls == self.usual and self.step == self.event["step"]
            if alone and last and not self.happened:
                self.happened = True
                raise RuntimeError("Connection closed by peer")
            return found

        dist.init_process_group, dist.all_reduce = joining, reducing

    def before(self, step: int) -> None:
        """Take note of a step that begins, and let happen what does so then."""
        if self.calls:
            self.usual = self.calls  # of the step before: how many calls make one
        self.step, self.calls = step, 0
        self.times.append(time.monotonic())
        self.begun[step] += 1
        ask_starter("begins", "", step)
        if step == self.event["step"] and self.begun[step] == 2:
            time.sleep(self.event["hold"] * self.patience)
        self.moment("killed before")
        if self.moment("stalls"):
            time.sleep(self.event["stall"] * self.patience)
            self.came.touch()
        comes = self.event["new"] >= 0 or (self.event["stall"] and self.me != self.event["replica"])
        if comes and step == self.event["step"] + 2:
            _until(self.came.exists)
            time.sleep(0.15)  # it asks meanwhile

    def after(self) -> None:
        """Let happen what does so when the optimizer has stepped."""
        self.moment("killed after")
        if self.event["stall"] and self.moment("steps alone"):
            time.sleep(self.event["stall"] * self.patience)
            self.came.touch()

    def moment(self, what: str, at_once: bool = False) -> bool:
        """Tell whether this is the moment; if it is one to be killed in, ask for it to be looked at."""
        mine = self.me == self.event["replica"] and self.event["what"] == what
        if self.happened or not mine or not (at_once or self.step == self.event["step"]):
            return False
        self.happened = True
        if what.startswith("killed"):
            ask_starter("moment", what, self.event["step"])
        return True
