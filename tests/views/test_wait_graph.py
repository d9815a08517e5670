from __future__ import annotations

import pytest

from helpers.ranks.failures import Deadlock, RankError, RankFailed, RankTimeout
from helpers.trace.events import CallWait, Diagnosis, OtherWait
from helpers.views.drawing import STYLES, Area, Drawing, Line, Word
from helpers.views.picture import Picture
from helpers.views.wait_graph import cycles, wait_graph
from tests.views.builders import event, place, receive_first, run_of

CYCLE = Diagnosis("cycle", "both receive first", "Let one send.", receive_first(), (0, 1))
TEXT = (
    "wait graph of 2 ranks: cycle 0 → 1 → 0\n"
    "rank 0 waits for rank 1 (recv, cell 5, line 3)\n"
    "rank 1 waits for rank 0 (recv, cell 5, line 7)"
)


def drawing(picture: Picture) -> Drawing:
    assert isinstance(picture.figure, Drawing)
    return picture.figure


def arrows(picture: Picture) -> list[Line]:
    return [mark for mark in drawing(picture).marks if isinstance(mark, Line)]


def nodes(picture: Picture) -> list[Area]:
    return [mark for mark in drawing(picture).marks if isinstance(mark, Area)]


def legend(picture: Picture) -> list[str]:
    return [mark.text for mark in drawing(picture).fixed if isinstance(mark, Word)]


def waiting(rank: int, op: str, *whom: int, **more: object) -> CallWait:
    call = event(rank, 0, op, 0, None, where=place(rank + 3), world=16, **more)
    return CallWait(rank, call, whom)


@pytest.mark.parametrize(
    "what",
    [CYCLE, Deadlock(CYCLE), run_of(["", ""], failure=Deadlock(CYCLE))],
    ids=["diagnosis", "failure", "run"],
)
def test_draws_same_graph_from_each_source(what: object) -> None:
    picture = wait_graph(what)  # type: ignore[arg-type]
    assert picture.text == TEXT
    assert len(arrows(picture)) == 2
    assert picture._repr_png_() == wait_graph(CYCLE)._repr_png_()


def test_draws_waits_of_timeout() -> None:
    waits = (waiting(0, "recv", 1, peer=1), OtherWait(1, "in its own code at cell 5, line 9"))
    picture = wait_graph(RankTimeout(3.0, waits))
    assert picture.text == (
        "wait graph of 2 ranks: time used up\n"
        "rank 0 waits for rank 1 (recv, cell 5, line 3)\n"
        "rank 1: in its own code at cell 5, line 9"
    )
    assert legend(picture) == ["waits for", "waits in a call", "not in a communication call"]


def test_distinguishes_cycle_and_states_without_color() -> None:
    waits = (
        waiting(0, "recv", 1, peer=1),
        waiting(1, "barrier", 0, 3),
        waiting(2, "send", 1, peer=1),
        OtherWait(3, "has returned"),
        OtherWait(4, "has died"),
    )
    picture = wait_graph(Diagnosis("stuck", "", "", waits, (3,)))
    styles = [arrow.style for arrow in arrows(picture)]
    assert styles.count("bold") == 2 and styles.count("dashed") == 2
    assert STYLES["bold"].width > STYLES["dashed"].width and not STYLES["bold"].dash
    assert picture.text.splitlines()[0] == "wait graph of 5 ranks: stuck, cycle 0 → 1 → 0"
    shapes = {(len(node.points), node.look) for node in nodes(picture)}
    assert len(shapes) == 3, "waiting, returned and died ranks have shapes of their own"
    assert [node.style for node in nodes(picture)].index("guilty") == 3
    named = [mark.text for mark in drawing(picture).marks if isinstance(mark, Word)]
    assert {"recv←1", "cell 5, line 3", "has returned", "look here first"} <= set(named)


def test_mutual_waits_have_separate_arrows() -> None:
    there, back = arrows(wait_graph(CYCLE))
    assert there.points[0][0] < there.points[1][0] and back.points[0][0] > back.points[1][0]
    assert abs(there.points[0][1] - back.points[0][1]) > 6


def test_finds_each_cycle_once() -> None:
    pairs = [waiting(a, "recv", b) for a, b in ((0, 1), (1, 0), (2, 3), (3, 2), (4, 0))]
    assert cycles(pairs) == [(0, 1), (2, 3)]
    around = [waiting(r, "recv", (r - 1) % 4) for r in range(4)]
    assert cycles(around) == [(0, 3, 2, 1)]
    assert cycles([waiting(0, "recv", 1), OtherWait(1, "has returned")]) == []


def test_draws_sixteen_ranks_awaiting_one() -> None:
    waits = tuple(
        OtherWait(5, "has died") if r == 5 else waiting(r, "all_reduce", 5) for r in range(16)
    )
    picture = wait_graph(Diagnosis("rank_left", "", "", waits, (5,)))
    lines = picture.text.splitlines()
    assert lines[0] == "wait graph of 16 ranks: rank left"
    assert lines[1] == "rank 0 waits for rank 5 (all_reduce, cell 5, line 3)"
    assert lines[6] == "rank 5: has died"
    assert len(arrows(picture)) == 15
    assert picture._repr_png_()


def test_draws_hostile_text_and_huge_graphs() -> None:
    waits = (
        waiting(0, "recv", 0, 1, 1, 77, -3, call="$\\frac{<b>\x1b[31m" * 500),
        OtherWait(1, "$\\bad{\n\x00" * 500),
        *(waiting(r, "barrier", *range(40)) for r in range(2, 40)),
    )
    picture = wait_graph(Diagnosis("odd\nkind" * 100, "", "", waits))
    assert picture._repr_png_()
    assert len(arrows(picture)) == 300
    assert max(map(len, picture.text.splitlines())) < 300
    assert "\x1b" not in picture.text


def test_rejects_values_without_waits() -> None:
    with pytest.raises(ValueError, match="ended without a failure"):
        wait_graph(run_of(["", ""]))
    failed = RankFailed(RankError(0, "ValueError", "no"))
    with pytest.raises(ValueError, match="ended RankFailed"):
        wait_graph(run_of([""], failure=failed))
    with pytest.raises(TypeError, match="not from RankFailed"):
        wait_graph(failed)  # type: ignore[arg-type]
