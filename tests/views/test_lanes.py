from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from helpers.ranks.failures import Deadlock, RankDied, RankError, RankFailed, RankTimeout
from helpers.ranks.run import Run, RunningRanks
from helpers.trace.events import Diagnosis, OtherWait
from helpers.views.lanes import lanes_html, lanes_live_html, lanes_text
from tests.views.builders import place, receive_first, run_of


def deadlocked(guilty: tuple[int, ...] = (0, 1)) -> Run:
    diagnosis = Diagnosis("cycle", "both receive first", "Let one send.", receive_first(), guilty)
    return run_of(["before\n", ""], failure=Deadlock(diagnosis))


def failed() -> Run:
    error = RankError(1, "ValueError", "no <b>", (place(3),))
    after = RankError(0, "RuntimeError", "Connection closed by peer")
    return run_of(["a\n", "b\n"], failure=RankFailed(error, (after,)))


def test_text_lists_prints_and_return_values() -> None:
    run = run_of(["hello\n\nthere\n", "", "hi"], [3, None, None])
    assert lanes_text(run) == (
        "rank 0 | hello\nrank 0 |\nrank 0 | there\nrank 0 → 3\nrank 1 → None\nrank 2 | hi"
    )


def test_silent_run_text_is_one_line() -> None:
    assert lanes_text(run_of([""] * 4)) == "4 ranks: nothing printed, nothing returned"
    assert "4 ranks: nothing printed" in lanes_html(run_of([""] * 4))


def test_text_of_deadlock_lists_waits() -> None:
    assert lanes_text(deadlocked()) == (
        "rank 0 | before\n"
        "Deadlock: both receive first\n"
        "  rank 0: recv from rank 1 at cell 5, line 3: waits for rank 1\n"
        "  rank 1: recv from rank 0 at cell 5, line 7: waits for rank 0\n"
        "Let one send."
    )


def test_text_of_failure_shows_root_cause() -> None:
    assert lanes_text(failed()) == (
        "rank 0 | a\n"
        "rank 1 | b\n"
        "RankFailed: rank 1 raised ValueError: no <b>\n"
        "  cell 5, line 3, in f\n"
        "  (as a consequence, a connection was lost on rank 0 (RuntimeError))"
    )


def test_text_aligns_ranks_and_appends_notes() -> None:
    lines = lanes_text(run_of(["x"] * 11, notes=("a new server was started",))).splitlines()
    assert lines[0] == "rank  0 | x"
    assert lines[10:] == ["rank 10 | x", "note: a new server was started"]


def test_lanes_omit_run_duration() -> None:
    run = run_of(["x", "y"], seconds=1.25)
    assert "1.25" not in lanes_text(run) + lanes_html(run)


class _Reader(HTMLParser):
    """Collects text and styles, and insists that each tag is closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.styles: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.add(tag)
        assert {name for name, _ in attrs} <= {"style", "tabindex"}
        self.styles += [value or "" for _, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data + "\n"


def read(html: str) -> _Reader:
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert not reader.open
    return reader


def test_html_escapes_rank_content() -> None:
    evil = "</pre><script>alert(1)</script><img src=x onerror=alert(1)>\x1b[31m"
    error = RankError(0, evil, evil)
    after = RankError(1, evil, evil)
    run = run_of([evil, evil], [None, evil], failure=RankFailed(error, (after,)), notes=(evil,))
    waits = (OtherWait(0, evil), OtherWait(1, evil))
    for html in (
        lanes_html(run),
        lanes_live_html(RunningRanks(["running"] * 2, [evil, evil], waits, 3.0)),
    ):
        page = read(html)
        assert page.tags <= {"div", "pre", "b", "span", "style"}
        assert html.count("<style") <= 1
        assert "<script>alert(1)</script>" in page.text
        assert "\x1b" not in html


def test_html_needs_no_theme_or_stylesheet() -> None:
    # JupyterLab strips both from the stored output of a notebook that it does not trust.
    for run in (deadlocked(), failed(), run_of(["x", "y"], [1, 2])):
        html = lanes_html(run)
        assert "var(" not in html and "<style" not in html and "class=" not in html


def test_html_labels_failing_ranks_in_words() -> None:
    assert "failed" in read(lanes_html(failed())).text
    died = run_of(["", ""], failure=RankDied(1, "SIGSEGV", -11, "Look at C code."))
    assert "died" in read(lanes_html(died)).text
    assert read(lanes_html(deadlocked())).text.count("stuck") == 2
    assert read(lanes_html(deadlocked((1,)))).text.count("look here first") == 1


def test_html_shows_cause_before_ranks() -> None:
    text = read(lanes_html(deadlocked())).text
    assert text.index("both receive first") < text.index("rank 0\n") < text.index("rank 1\n")
    assert text.count("recv from rank 1 at cell 5, line 3") == 1
    timed_out = run_of(["", ""], failure=RankTimeout(3.0, receive_first()))
    assert "timed out after 3 s" in read(lanes_html(timed_out)).text


def test_failed_run_html_omits_none_results() -> None:
    assert read(lanes_html(run_of(["x", ""], [None, 1]))).text.count("returned None") == 1
    assert "returned None" not in lanes_html(failed())


@pytest.mark.extended
def test_long_output_scrolls_and_is_capped() -> None:
    html = lanes_html(run_of(["line\n" * 100_000] * 16))
    assert len(html) < 200_000
    assert "99,800 lines not shown" in html
    assert any("max-height" in s and "overflow: auto" in s for s in read(html).styles)


def test_long_failure_shows_last_line() -> None:
    text = "\n".join(f"line {n}" for n in range(40))
    page = read(lanes_html(run_of([""], failure=RankFailed(RankError(0, "ValueError", text)))))
    assert "line 39" in page.text
    assert not any("max-height: 14em" in style for style in page.styles)


@pytest.mark.parametrize("world_size", [2, 16])
def test_live_view_shows_output_and_activity(world_size: int) -> None:
    output = ["\n".join(f"step {n}" for n in range(50))] * world_size
    text = read(
        lanes_live_html(RunningRanks(["running"] * world_size, output, receive_first(), 12.4))
    ).text
    assert f"{world_size} ranks running for 12 s" in text
    assert "step 49" in text and "step 1\n" not in text
    assert "now: recv from rank 0 at cell 5, line 7: waits for rank 0" in text
    assert len(re.findall(r"^rank \d+$", text, re.MULTILINE)) == world_size


def test_draws_ranks_without_output_or_value() -> None:
    run = Run(3, [1], ["only one"], run_of([""]).trace)
    assert lanes_text(run) == "rank 0 | only one\nrank 0 → 1\nrank 1 → None\nrank 2 → None"
    assert "rank 2" in lanes_live_html(RunningRanks(["running"] * 3, [], (), 0.0))


def test_live_view_shows_rank_states() -> None:
    html = lanes_live_html(RunningRanks(["returned", "failed", "running"], ["", "", "x"], (), 3.0))
    text = read(html).text
    assert "3 ranks running for 3 s, 1 done" in text
    assert text.index("done") < text.index("failed") < text.rindex("running")
