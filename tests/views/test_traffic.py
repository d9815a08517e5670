from __future__ import annotations

import pytest

from helpers.trace.events import Trace
from helpers.views.traffic import bytes_by_collective, traffic, traffic_matrix
from tests.views.builders import event, ping_pong, ring, trace_of_rows


def test_draws_traffic_of_two_ranks() -> None:
    picture = traffic(ping_pong(2))
    assert picture.text == (
        "traffic of 2 ranks: 4 messages, all_reduce\n"
        "rank 0 → rank 1: 800 B in 2 messages\n"
        "rank 1 → rank 0: 800 B in 2 messages\n"
        "all_reduce: each rank passed 400 B"
    )
    pairs, ops = _by_label(picture.figure.axes)
    assert [t.get_text() for t in pairs.texts] == ["800 B\n(2)", "800 B\n(2)"]
    assert not _bars(picture.figure.axes)  # a scale of one amount, which is in the cells
    assert [t.get_text() for t in ops.texts] == ["400 B", "400 B"]
    assert traffic_matrix(ping_pong(2)) == [[0, 800], [800, 0]]


def _by_label(axes):  # type: ignore[no-untyped-def]
    pairs = next(a for a in axes if a.get_xlabel() == "to rank")
    ops = next(a for a in axes if a.get_ylabel() == "rank")
    return pairs, ops


def _bars(axes):  # type: ignore[no-untyped-def]
    return [a.get_ylabel() for a in axes if a.get_ylabel().startswith("bytes")]


def test_different_amounts_get_color_scale() -> None:
    sends = [[event(0, n, "send", n, n + 1, peer=n + 1, nbytes=8 + n) for n in (0, 1)], [], []]
    assert _bars(traffic(trace_of_rows(3, sends)).figure.axes) == ["bytes sent [B]"]


def test_cells_without_message_stay_empty() -> None:
    image = traffic(ping_pong()).figure.axes[0].images[0].get_array()
    assert image is not None
    assert image.mask.tolist() == [[True, False], [False, True]]  # type: ignore[union-attr]


def test_counts_only_received_messages() -> None:
    trace = trace_of_rows(
        2,
        [
            [
                event(0, 0, "send", 0, None, peer=1),
                event(0, 1, "send", 1, 2, peer=1, nbytes=8, tag=1),
                event(0, 2, "send", 2, 3, peer=1, error="closed", tag=2),
            ],
            [event(1, 0, "recv", 0, None, peer=0)],
        ],
    )
    assert traffic_matrix(trace) == [[0, 8], [0, 0]]


def test_describes_collectives_for_each_rank() -> None:
    trace = trace_of_rows(
        2, [[event(rank, 0, "broadcast", 0, 1, root=0, nbytes=400 * (1 - rank))] for rank in (0, 1)]
    )
    assert bytes_by_collective(trace) == {"broadcast": [400, 0]}
    assert traffic(trace).text == (
        "traffic of 2 ranks: broadcast\nbroadcast: passed by rank 0 400 B, rank 1 0 B"
    )


def test_text_reports_absence_of_communication() -> None:
    picture = traffic(Trace(3))
    assert picture.text == "traffic of 3 ranks: no communication"
    assert picture._repr_png_()


@pytest.mark.extended
def test_sixteen_ranks_omit_cell_numbers() -> None:
    picture = traffic(ring())
    lines = picture.text.splitlines()
    assert lines[0] == "traffic of 16 ranks: 240 messages, all_reduce"
    assert lines[-2] == "rank 15 → rank 0: 6,000 B in 15 messages"
    assert not _by_label(picture.figure.axes)[0].texts
    assert _bars(picture.figure.axes) == ["bytes sent [kB]"]
    assert picture.text == traffic(ring()).text
    assert picture._repr_png_() == traffic(ring())._repr_png_()


def test_caps_number_of_listed_pairs() -> None:
    rows = [
        [event(r, o, "send", 0, 1, peer=o, world=16) for o in range(16) if o != r]
        for r in range(16)
    ]
    lines = traffic(trace_of_rows(16, rows)).text.splitlines()
    assert len(lines) == 34 and lines[-1] == "… and 208 more pairs of ranks"


def test_draws_hostile_traces() -> None:
    rows = [
        event(0, 0, "send", 0, 1, peer=9),
        event(0, 1, "send", 0, 1, peer=-1),
        event(5, 0, "send", 0, 1, peer=0),
        event(0, 2, "send", 0, 1, peer=None),
        event(0, 3, "send", 0, 1, peer=1, nbytes=10**40),
        event(1, 0, "send", 0, 1, peer=0, nbytes=-5),
        event(-1, 0, "all_reduce", 0, 1),
        event(0, 4, "all_reduce", 0, 1, nbytes=-(10**40)),
    ]
    trace = trace_of_rows(2, [rows])
    assert traffic_matrix(trace) == [[0, 2**60], [0, 0]]
    picture = traffic(trace)
    assert "rank 1 → rank 0: 0 B in 1 message" in picture.text
    assert picture._repr_png_()


def test_rejects_values_other_than_runs() -> None:
    with pytest.raises(TypeError, match="not from str"):
        traffic("trace")  # type: ignore[arg-type]
