"""Runs on several hosts: each view shows the hosts of the ranks, and the traffic between hosts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from helpers.ranks.failures import Deadlock
from helpers.ranks.run import Run, RunningRanks, StoppedRanks
from helpers.trace.events import CallWait, Diagnosis, Trace
from helpers.views.by_host import host_lines
from helpers.views.drawing import Drawing, Line
from helpers.views.lanes import (
    lanes_html,
    lanes_live_html,
    lanes_stopped_html,
    lanes_stopped_text,
    lanes_text,
)
from helpers.views.rank_grid import rank_grid
from helpers.views.timeline import timeline
from helpers.views.traffic import traffic
from helpers.views.traffic_ledger import traffic_ledger
from helpers.views.wait_graph import wait_graph
from tests.views.builders import event, place, run_of, trace_of_rows

HOSTS = ("n1", "n1", "n2", "n2")
WHERE = "n1: ranks 0, 1; n2: ranks 2, 3"


def two_levels() -> Trace:
    """A sum within each host, a sum between hosts, a message within a host, and a message between hosts."""
    rows = []
    for rank in range(4):
        inside, between = ((0, 1), (2, 3))[rank // 2], ((0, 2), (1, 3))[rank % 2]
        rows.append(
            [
                event(rank, 0, "span", 0, 40, call="backward"),
                event(rank, 1, "all_reduce", 1, 9, group=f"in {inside}", group_ranks=inside),
                event(rank, 2, "all_reduce", 11, 19, group=f"{between}", group_ranks=between),
            ]
        )
    for src, dst, start in ((0, 1, 21), (1, 2, 31)):
        rows[src].append(event(src, 10 + start, "send", start, start + 5, peer=dst, nbytes=100))
        rows[dst].append(event(dst, 10 + start, "recv", start, start + 6, peer=src, nbytes=100))
    return replace(trace_of_rows(4, rows), hosts=HOSTS)


def run_on(hosts: tuple[str, ...], output: tuple[str, ...] = ("",) * 4) -> Run:
    return replace(run_of(output), trace=replace(two_levels(), hosts=hosts))


def test_host_lines_count_inter_host_traffic() -> None:
    assert host_lines(two_levels()) == [
        WHERE,
        "between hosts: 1 of 2 messages, 2 of 4 collectives",
    ]
    assert host_lines(Trace(3, hosts=("a", "b", "a"))) == [
        "a: ranks 0, 2; b: rank 1",
        "between hosts: nothing",
    ]
    assert host_lines(replace(two_levels(), hosts=())) == []


def test_timeline_groups_lanes_by_host() -> None:
    picture = timeline(two_levels())
    assert WHERE in picture.text
    drawing, alone = picture.figure, timeline(replace(two_levels(), hosts=())).figure
    assert isinstance(drawing, Drawing) and isinstance(alone, Drawing)
    assert _words(drawing) - _words(alone) == {
        "n1",
        "n2",
        "message between hosts",
        "outlined: between hosts",
    }
    arrows = [mark for mark in drawing.marks if isinstance(mark, Line) and mark.head]
    assert sorted(mark.style for mark in arrows) == ["bold", "line"]
    assert drawing.height > alone.height
    assert drawing.png(1.0)


def _words(drawing: Drawing) -> set[str]:
    return {getattr(mark, "text", "") for mark in (*drawing.marks, *drawing.fixed)}


def test_traffic_counts_bytes_between_hosts() -> None:
    picture = traffic(run_on(HOSTS))
    assert picture.text.splitlines()[1:3] == [
        WHERE,
        "between hosts: 1 of 2 messages, 2 of 4 collectives; 100 of 200 B sent; "
        "1,600 of 3,200 B passed to collectives",
    ]
    pairs = next(a for a in picture.figure.axes if a.get_xlabel() == "to rank")  # type: ignore[union-attr]
    assert [t.get_text() for t in pairs.get_yticklabels()] == ["n1  0", "1", "n2  2", "3"]


def test_ledger_reports_phase_bytes_between_hosts() -> None:
    picture = traffic_ledger({"two levels": run_on(HOSTS)}, phases=("backward",))
    assert "2 all_reduces, 1 send: 900 B, 400 B of it between hosts" in picture.text


def test_grid_has_row_for_each_host() -> None:
    assert rank_grid(run_on(HOSTS)).text.startswith("4 ranks in 2 x 2, a row for each host: n1, n2")
    odd = rank_grid(run_on(("n1", "n1", "n1", "n2"))).text
    assert "host" not in odd, "hosts of different sizes are not rows"


def test_wait_graph_shows_hosts() -> None:
    waits = tuple(
        CallWait(
            rank,
            event(rank, 0, "recv", 0, None, peer=3 - rank, where=place(3)),
            (3 - rank,),
        )
        for rank in range(4)
    )
    failure = Deadlock(Diagnosis("cycle", "A cycle.", "Send first.", waits), HOSTS)
    failure.run = replace(run_on(HOSTS), failure=failure)
    assert "rank 2 on n2 waits for rank 1 (recv, cell 5, line 3)" in wait_graph(failure.run).text
    drawing = wait_graph(failure).figure
    assert isinstance(drawing, Drawing) and {"on n1", "on n2"} <= _words(drawing)


def test_lanes_are_under_their_host() -> None:
    run = run_on(HOSTS, ("a\n", "", "", "b\n"))
    assert lanes_text(run).splitlines() == [
        "n1:",
        "rank 0 | a",
        "rank 1 → None",
        "n2:",
        "rank 2 → None",
        "rank 3 | b",
    ]
    assert lanes_text(run_on(HOSTS)) == "4 ranks on 2 hosts: nothing printed, nothing returned"
    states, output = ["running"] * 4, ["a", "", "", "b"]
    stopped_ranks = StoppedRanks(states, output, (), 2, HOSTS)
    stopped = lanes_stopped_text(stopped_ranks)
    assert stopped.splitlines()[1:4] == ["n1:", "rank 0 | a", "rank 0: was running"]
    for html in (
        lanes_html(run),
        lanes_live_html(RunningRanks(states, output, (), 1, HOSTS)),
        lanes_stopped_html(stopped_ranks),
    ):
        assert html.index(">n1<") < html.index("rank 1") < html.index(">n2<") < html.index("rank 2")


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["<b>x</b>", "n" * 500, "a\nb\x1b[31m"])
def test_odd_host_names_break_no_view(name: str) -> None:
    run = run_on((name, name, "n2", "n2"), ("a\n",) * 4)
    assert "<b>x" not in lanes_html(run)
    assert len(lanes_text(run).splitlines()) == 6
    for picture in (timeline(run), traffic(run), rank_grid(run)):
        assert max(map(len, picture.text.splitlines())) < 300
        assert picture._repr_png_()
