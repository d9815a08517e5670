"""Test the effects of hostile answers: no points, nothing reached, nothing broken, nothing left."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from helpers.checks.registry import get
from helpers.grading.grader import Grader
from helpers.grading.sandbox.bubblewrapped import FIRST_USER
from helpers.grading.sandbox.levels import Plan
from tests.grading.hostile import files, network, processes, stopped, values, wire
from tests.grading.hostile.attack import TOUCHED, Attack, graded, hand_in, slots, text_of
from tests.grading.hostile.conftest import SLOT, grader_of
from tests.grading.notebooks import RIGHT, write_notebook
from tests.submission_files import all_samples

COURSE = Path(__file__).parents[3]
SETTLE_S = 5.0

pytestmark = pytest.mark.timeout(400)
"""Timeout of tests that each hand in ten or more submissions, some of which use up their whole time."""


# Each run tries one attack of each kind; long runs try all.
OFTEN = {
    "equal to everything",
    "patched torch.equal, allclose, isclose",
    "the values of wire made of nothing",
    "an error that cannot be shown",
    "a list inside itself",
    "ranges without end, and lists of them",
    "a frame of gigantic length",
    "half a frame, then the end",
    "a pickle in a value's place",
    "events without meaning",
    "a result, and then silence with the channel open",
    "a log that says to be longer than it is",
    "os._exit",
    "a fault in C",
    "all signals to everybody else",
    "limits and rights of the rank server",
    "a fault file that is a pipe without end",
    "a daemon",
    "threads for which its end must wait",
    "state for the next exercise",
    "state of the exercise before",
    "3 GB in one piece",
    "output without end",
    "descriptors without end",
    "a fork bomb",
    "a loop without end in C",
}


def often(attacks: Sequence[Attack]) -> pytest.MarkDecorator:
    """Parametrize a test with one attack of each kind and, in long runs, with all."""
    some = [each for each in attacks if each.name in OFTEN]
    everything = pytest.param(attacks, marks=pytest.mark.soak)
    return pytest.mark.parametrize("attacks", [some, everything], ids=["some", "all"])


def contained(grader: Grader, folder: Path, attacks: Sequence[Attack]) -> None:
    """Hand in the attacks; fail with all attacks that were not contained."""
    records = hand_in(grader, folder, attacks)
    problems = []
    for attack in attacks:
        record, text = records[attack.name], text_of(records[attack.name])
        # on a busy machine an attack may run out of time before it succeeds
        is_late = record.outcome == "too slow"
        is_expected = record.outcome in attack.outcomes or is_late
        if record.points or not is_expected or TOUCHED in text:
            problems.append(f"{attack.name}: {record.outcome}, {record.points}: {text[:500]}")
        elif "root:x:" in text:
            problems.append(f"{attack.name}: shows a file of this machine")
        elif attack.says not in text and not is_late:
            problems.append(f"{attack.name}: no {attack.says!r} in {text[:500]}")
    assert not problems, "\n".join(problems)


def processes_of(user: int) -> set[int]:
    return {p.pid for p in psutil.process_iter() if _is_of(p, user)}


def _is_of(process: psutil.Process, user: int) -> bool:
    try:
        return bool(process.uids().real == user and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@pytest.fixture(autouse=True)
def no_process_left() -> Iterator[None]:
    """Fail if a process of the sandbox's user is left, whatever its parent is by then."""
    yield
    deadline = time.monotonic() + SETTLE_S
    while left := processes_of(FIRST_USER + SLOT):
        assert time.monotonic() < deadline, f"left behind: {left}"
        time.sleep(0.02)


def test_attacks_of_every_run_exist() -> None:
    groups = values.VALUES, wire.WIRE, processes.ENDINGS, processes.REMAINS
    names = {a.name for group in (*groups, processes.FLOODS, processes.BOMBS) for a in group}
    assert names >= OFTEN


@pytest.mark.extended
@often(values.VALUES)
def test_false_values_earn_no_points(
    lenient: Grader, tmp_path: Path, attacks: Sequence[Attack]
) -> None:
    contained(lenient, tmp_path, attacks)


@pytest.mark.extended
@often(wire.WIRE)
def test_forged_frames_cost_only_own_exercise(
    lenient: Grader, tmp_path: Path, attacks: Sequence[Attack]
) -> None:
    contained(lenient, tmp_path, attacks)


@pytest.mark.soak
def test_event_flood_costs_only_own_exercise(lenient: Grader, tmp_path: Path) -> None:
    contained(lenient, tmp_path, wire.EVENTS)


@pytest.mark.extended
@often(processes.ENDINGS)
def test_process_killer_ends_only_own_processes(
    lenient: Grader, tmp_path: Path, attacks: Sequence[Attack]
) -> None:
    contained(lenient, tmp_path, attacks)


@pytest.mark.extended
@pytest.mark.usefixtures("enclosed")
@often(processes.REMAINS)
def test_attack_leaves_nothing_for_next_exercise(
    lenient: Grader, tmp_path: Path, attacks: Sequence[Attack]
) -> None:
    contained(lenient, tmp_path, attacks)


@pytest.mark.extended
@pytest.mark.usefixtures("enclosed")
@often(processes.FLOODS)
def test_exceeded_limit_costs_only_own_exercise(
    lenient: Grader, tmp_path: Path, attacks: Sequence[Attack]
) -> None:
    contained(lenient, tmp_path, attacks)


@pytest.mark.extended
@often(processes.BOMBS)
def test_bombs_end_within_small_limits(
    frugal: Grader, tmp_path: Path, attacks: Sequence[Attack]
) -> None:
    if frugal.plan.level != "bubblewrap":
        # sockets and files are counted by that sandbox; other limits apply here
        held = ("crashed", "too much memory", "too many processes")
        attacks = [replace(each, says="", outcomes=(*each.outcomes, *held)) for each in attacks]
    contained(frugal, tmp_path, attacks)


# --- reading, writing, communicating --------------------------------------------------------------


@pytest.fixture
def around(tmp_path: Path) -> dict[str, str]:
    """A class with results, next to the hostile submission."""
    out = tmp_path / "out"
    (out / "records").mkdir(parents=True)
    for path in (out / "secret", out / "records" / "bela.json"):
        path.write_text("secret")
        path.chmod(0o666)  # permissions must not help the sandbox
    other = write_notebook(tmp_path / "class" / "bela" / "02_blocking_p2p.ipynb", RIGHT)
    other.chmod(0o666)
    return {"course": str(COURSE), "out": str(out), "other": str(other), "pid": str(os.getpid())}


def filled(attacks: Sequence[Attack], words: dict[str, str]) -> list[Attack]:
    return [replace(each, source=_with(each.source, words)) for each in attacks]


def _with(source: str, words: dict[str, str]) -> str:
    for name, word in words.items():
        source = source.replace(f"{{{name}}}", word)
    return source.replace("{{", "{").replace("}}", "}")


def state_of(folder: Path) -> dict[str, tuple[bytes, int, int, int]]:
    found = {}
    for path in sorted(folder.rglob("*")):
        told = path.stat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (content, told.st_mode, told.st_uid, told.st_mtime_ns)
    return found


@pytest.fixture(params=["bubblewrap", "landlock"])
def sandboxed(request: pytest.FixtureRequest, plan: Plan) -> Iterator[Grader]:
    """A grader behind each kind of protection."""
    from helpers.grading.sandbox.levels import NoSandbox, choose_level

    try:
        level = choose_level(request.param, plan.staged)
    except NoSandbox as error:
        pytest.skip(str(error))
    yield grader_of(replace(plan, level=level))
    if plan.level != "bubblewrap":  # otherwise the template is also used by other tests
        plan.__exit__()


@pytest.mark.extended
@pytest.mark.parametrize(
    "sandboxed", ["bubblewrap", pytest.param("landlock", marks=pytest.mark.soak)], indirect=True
)
def test_answers_cannot_read_other_files(
    sandboxed: Grader, tmp_path: Path, around: dict[str, str]
) -> None:
    contained(sandboxed, tmp_path / "handed-in", filled(files.READING, around))


@pytest.mark.extended
def test_answers_cannot_write_other_files(
    sandboxed: Grader, tmp_path: Path, around: dict[str, str]
) -> None:
    before = state_of(Path(around["out"])), state_of(tmp_path / "class")
    contained(sandboxed, tmp_path / "handed-in", filled(files.WRITING, around))
    assert (state_of(Path(around["out"])), state_of(tmp_path / "class")) == before


@pytest.mark.extended
def test_refuses_unusual_system_calls(sandboxed: Grader, tmp_path: Path) -> None:
    contained(sandboxed, tmp_path, filled(files.KERNEL, {}))


@pytest.mark.soak
def test_reading_attacks_succeed_without_sandbox(
    plan: Plan, tmp_path: Path, around: dict[str, str]
) -> None:
    """Harmless attacks succeed without a sandbox, which proves that the sandbox stops them."""
    attacks = [each for each in filled(files.READING, around) if each.bare]
    records = hand_in(grader_of(replace(plan, level="none")), tmp_path / "handed-in", attacks)
    assert all(TOUCHED in text_of(record) for record in records.values())


class Listeners:
    """Listeners that a hostile answer could reach on this machine, with a count of connections."""

    def __init__(self, folder: Path) -> None:
        self.heard = 0
        self.tcp = socket.create_server(("0.0.0.0", 0))
        self.abstract, self.path = f"real-ranks-{os.getpid()}", str(folder / "socket")
        self.unix = [socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)]
        self.unix[0].bind(f"\0{self.abstract}")
        self.unix[1].bind(self.path)
        os.chmod(self.path, 0o777)
        self.all = [self.tcp, *self.unix]
        self.threads = [threading.Thread(target=self._listen, args=(one,)) for one in self.all]
        for one in self.all:
            one.listen()
            one.settimeout(0.1)
        self.over = False
        for thread in self.threads:
            thread.start()

    def _listen(self, one: socket.socket) -> None:
        while not self.over:
            try:
                one.accept()[0].close()
                self.heard += 1
            except TimeoutError:
                continue

    def words(self) -> dict[str, str]:
        port = str(self.tcp.getsockname()[1])
        address = socket.gethostbyname(socket.gethostname())
        return {"port": port, "address": address, "abstract": self.abstract, "path": self.path}

    def close(self) -> None:
        self.over = True
        for thread in self.threads:
            thread.join(5.0)
        for one in self.all:
            one.close()


@pytest.fixture
def listeners(tmp_path: Path) -> Iterator[Listeners]:
    made = Listeners(tmp_path)
    yield made
    made.close()


@pytest.mark.extended
@pytest.mark.parametrize(
    "sandboxed", ["bubblewrap", pytest.param("landlock", marks=pytest.mark.soak)], indirect=True
)
def test_connections_never_leave_machine(
    sandboxed: Grader, tmp_path: Path, listeners: Listeners
) -> None:
    never, talk = filled([network.NEVER, network.NETWORK], listeners.words())
    contained(sandboxed, tmp_path / "never", [never])
    assert listeners.heard == 0
    if sandboxed.plan.level == "bubblewrap":
        contained(sandboxed, tmp_path / "talk", [talk])
        assert listeners.heard == 0
    else:  # as stated in its DOES_NOT_STOP
        record = hand_in(sandboxed, tmp_path / "talk", [talk])[talk.name]
        assert record.points == 0 and listeners.heard > 0


@pytest.mark.usefixtures("enclosed")
def test_learner_never_sees_hidden_inputs(lenient: Grader, tmp_path: Path) -> None:
    """No trick helps, because no visible case is tried in a sandbox that has seen a hidden one."""
    drawn = (get(n).draw(small=small) for n in slots() for small in (False, True))
    shown = {repr(inputs) for cases in drawn for case in cases for inputs in case.given}
    # ids of processes and threads only grow, so hidden cases leave a mark that cannot be removed
    leak = f"""
import os, threading
SHOWN = {shown!r}
def attack(rank, world_size, *inputs):
    for _ in range(0 if repr(inputs) in SHOWN else 1000):
        thread = threading.Thread(target=len, args=("",))
        thread.start()
        thread.join()
    return f"pid {{os.getpid()}}"
"""
    records = hand_in(lenient, tmp_path, [Attack(f"number {n}", leak) for n in range(2)])
    assert any(case.hidden for record in records.values() for case in record.cases)
    text = "".join(text_of(record) for record in records.values())
    assert max(int(part.split("'")[0]) for part in text.split("pid ")[1:]) < 1000


@pytest.mark.extended
def test_crashing_answer_costs_no_other_points(lenient: Grader, tmp_path: Path) -> None:
    broken = "import os\ndef token_ring(rank, world_size, token):\n    os._exit(1)"
    record = graded(lenient, tmp_path, broken, RIGHT, notebook="02_blocking_p2p")
    points = {each.name: each.points for each in record.exercises}
    assert points["ping_pong"] == 10 and points["token_ring"] == 0


@pytest.mark.extended
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "sandboxed", ["bubblewrap", pytest.param("landlock", marks=pytest.mark.soak)], indirect=True
)
def test_stopped_answer_costs_only_own_exercise(sandboxed: Grader, tmp_path: Path) -> None:
    """A stopped rank, stopped peers and a stopped server end at a deadline; later answers get all points."""
    right = next(s.source for s in all_samples() if s.right and s.exercise == "global_argmax")
    # ranks are ended in the same way at each level; the server can be reached only at the weaker level
    attacks = stopped.STOPS if sandboxed.plan.level == "bubblewrap" else stopped.STOPS[-1:]
    cells = [
        a.source.replace("def attack(", f"def {n}(") for a, n in zip(attacks, slots(), strict=False)
    ]
    record = graded(sandboxed, tmp_path, *cells, right)
    found = {each.name: each for each in record.exercises}
    for attack, name in zip(attacks, slots(), strict=False):
        assert found[name].points == 0 and found[name].outcome in attack.outcomes, attack.name
        assert attack.says in text_of(found[name])
    assert (found["global_argmax"].outcome, found["global_argmax"].points) == ("passed", 10)
