"""A learner's side, in a separate process like a kernel, with a real board."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from helpers.checks.headings import headings
from helpers.checks.mistakes import known_mistakes
from helpers.room.board_messages import CheckEvent, HandEvent
from helpers.room.store import Store, StoredEvent
from tests.room.conftest import DEADLINE_S, Served, serving

ROOT = Path(__file__).parents[2]
SHELL = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
def cell(text): shell.run_cell(text, store_history=True).raise_error()
"""
NOTES = (
    'from helpers.room.outbox import record_check; record_check("ping_pong", "wrong", "a mistake");'
)
SENT = "from helpers.room import outbox, learner; import time\nwhile outbox.unsent_lines(): time.sleep(0.02)"


@dataclass(frozen=True)
class Kernel:
    """Runs a learner's programs in a folder."""

    python: str
    folder: Path

    @property
    def env(self) -> dict[str, str]:
        own = {"REAL_RANKS_PROGRESS": str(self.folder / "progress.json")}
        return {**os.environ, **own, "IPYTHONDIR": str(self.folder.parent / "ipython")}

    def run(self, program: str) -> str:
        """Run a program to its end; return its output."""
        done = subprocess.run(
            [self.python, "-c", program],
            cwd=ROOT,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def join(self, room: Served, name: str = "Ana") -> str:
        return self.run(
            f"from helpers import join; print(join({room.url!r}, {room.code!r}, {name!r}))"
        )

    @property
    def files(self) -> set[str]:
        return {each.name for each in self.folder.iterdir() if not each.name.endswith(".lock")}


@pytest.fixture
def kernel(tmp_path: Path, forking_python: str) -> Kernel:
    folder = tmp_path / "work"
    folder.mkdir()
    return Kernel(forking_python, folder)


@pytest.fixture
def happened(tmp_path: Path) -> Callable[[], list[StoredEvent]]:
    """Return the events in the room's file."""

    def read() -> list[StoredEvent]:
        with closing(Store(tmp_path / "room.sqlite3")) as store:
            return store.stored_events()

    return read


@pytest.mark.extended
def test_check_sends_explained_mistake_to_board(
    served: Served, kernel: Kernel, happened: Callable[[], list[StoredEvent]]
) -> None:
    assert "You have joined as Ana. From now on each check sends" in kernel.join(served)
    mistake = known_mistakes(headings()["ping_pong"])[0]
    program = f"""
cell({mistake.source!r})
cell("from helpers import check; result = check(ping_pong)")
from helpers.ranks.launcher import disconnect
disconnect()
"""
    kernel.run(SHELL + program + SENT)
    (one,) = happened()
    event = one.event
    assert isinstance(event, CheckEvent)
    assert (event.exercise, event.outcome) == ("ping_pong", mistake.outcome.value)
    assert event.mistake == mistake.title
    assert kernel.files == {".room.json", "progress.json"}
    assert (kernel.folder / ".room.json").stat().st_mode & 0o077 == 0


def test_stores_nothing_without_room(kernel: Kernel) -> None:
    kernel.run(NOTES)
    assert kernel.files == set()


def test_delivers_events_once_after_outage(
    tmp_path: Path, kernel: Kernel, happened: Callable[[], list[StoredEvent]]
) -> None:
    file = tmp_path / "room.sqlite3"
    with serving(file, kernel.python) as room:
        kernel.join(room)
        room.kill()
    # A kernel that exits while no board answers does not wait, and its lines are kept.
    kernel.run(3 * NOTES)
    outbox = kernel.folder / ".room-outbox.jsonl"
    kept = outbox.read_bytes()
    assert len(kept.splitlines()) == 3 and outbox.stat().st_mode & 0o077 == 0
    with serving(file, kernel.python, int(room.url.rpartition(":")[2])) as again:
        assert (again.url, again.code, again.key) == (room.url, room.code, room.key)
        kernel.run(NOTES + SENT)
        outbox.write_bytes(kept + b'{"at": 1, cut off')  # as if the board's answers had been lost
        kernel.run("from helpers.room.outbox import send_batch; send_batch()")
    assert [type(each.event) for each in happened()] == 4 * [CheckEvent]
    assert kernel.files == {".room.json"}


def test_help_sends_code_only_with_answer(
    served: Served, kernel: Kernel, happened: Callable[[], list[StoredEvent]]
) -> None:
    kernel.join(served)
    program = """
cell("from helpers import help_me")
cell("def swap(rank, world_size, x):\\n    return x")
cell("print(help_me())")
cell("print(help_me(swap))")
"""
    said = kernel.run(SHELL + program + SENT)
    assert "No code is sent with it" in said and "The code of `swap` is sent with it" in said
    first, second = (hand.event for hand in happened())
    assert isinstance(first, HandEvent) and isinstance(second, HandEvent)
    assert (first.up, first.exercise, first.code) == (True, "", "")
    assert second.exercise == "swap" and "def swap(rank, world_size, x)" in second.code
    kernel.run(SHELL + 'cell("from helpers import help_me; help_me(done=True)")\n' + SENT)
    *before, last = (hand.event for hand in happened())
    assert isinstance(last, HandEvent) and not last.up
    # the code of a lowered hand is not shown
    assert not any(isinstance(hand, HandEvent) and hand.code for hand in before)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("join('http://127.0.0.1:1', 'code')", "RoomError: No board answers at http://127.0.0.1:1"),
        (
            "join({url!r}, 'wrong')",
            "RoomError: The board at {url} refused: This is not the room's code",
        ),
        ("help_me()", "RoomError: You have not joined a room. To join one, call join(url, code)."),
        ("join('nowhere', 'code')", "RoomError: The server at nowhere is not a board"),
    ],
)
def test_join_and_help_errors_explain_problem(
    served: Served, kernel: Kernel, program: str, words: str
) -> None:
    said = kernel.run(
        "from helpers import join, help_me\n"
        f"try: {program.format(url=served.url)}\n"
        "except Exception as error: print(error._render_traceback_()[0])"
    )
    assert said.startswith(words.format(url=served.url))
    assert kernel.files == set()


@pytest.mark.extended
def test_departed_learner_sends_nothing(served: Served, kernel: Kernel) -> None:
    kernel.join(served)
    assert "left the room" in kernel.run("from helpers import join; print(join(''))" + "\n" + NOTES)
    assert kernel.files == set()


# --- kill -9 -----------------------------------------------------------------------------------------

POSTS = """
import sys
from helpers.room import outbox
from helpers.room.board_messages import CheckEvent, EventBatch
room = outbox.joined_room()
while True:
    event = CheckEvent(outbox.new_id(), "swap", "wrong")
    try:
        outbox.post(room.url, "api/events", EventBatch([event]), room.token)
    except outbox.RoomError:
        sys.exit(0)
    print(event.id, flush=True)
"""


def killed_while_it_stores(tmp_path: Path, kernel: Kernel, after: int) -> None:
    """Kill a board to which three learners post, once `after` posts are acknowledged; compare its file."""
    file = tmp_path / "room.sqlite3"
    acknowledged: list[str] = []
    with serving(file) as room:  # the real command, so that the signal reaches the board directly
        kernel.join(room)
        words = [sys.executable, "-c", POSTS]
        posting = [
            subprocess.Popen(words, cwd=ROOT, env=kernel.env, stdout=subprocess.PIPE, text=True)
            for _ in range(3)
        ]
        for _ in range(after):
            acknowledged.append(posting[0].stdout.readline())  # type: ignore[union-attr]
        room.process.send_signal(signal.SIGKILL)
        for poster in posting:
            # Not communicate(), which would skip lines already buffered by readline().
            acknowledged += poster.stdout  # type: ignore[arg-type]
            poster.wait(DEADLINE_S)
    with closing(Store(file)) as store:
        kept = {happened.event.id for happened in store.stored_events()}
    assert len(acknowledged) > after
    assert {line.strip() for line in acknowledged} <= kept
    # at most each learner's post in flight may be stored without an answer
    assert len(kept) <= len(acknowledged) + 3
    for each in file.parent.glob("room.sqlite3*"):
        each.unlink()


@pytest.mark.extended
def test_killed_board_keeps_acknowledged_events(tmp_path: Path, kernel: Kernel) -> None:
    killed_while_it_stores(tmp_path, kernel, 20)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_twenty_kills_keep_acknowledged_events(tmp_path: Path, kernel: Kernel) -> None:
    for after in range(1, 60, 3):
        killed_while_it_stores(tmp_path, kernel, after)


@pytest.mark.extended
def test_reports_occupied_port(served: Served, tmp_path: Path) -> None:
    port = served.url.rpartition(":")[2]
    words = ["room", "serve", "--file", str(tmp_path / "other.sqlite3"), "--port", port]
    done = subprocess.run(
        [sys.executable, "-m", "helpers.course.cli", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 1 and "Choose a different port with --port." in done.stderr
