"""Bars say what was measured; the text beside them says the same on every machine."""

from __future__ import annotations

import pytest

from helpers.views.startup_bars import startup_bars

SECONDS = {"spawn": 4.2, "fork": 0.084, "rank server": 0.042}


def test_each_way_has_a_bar_of_its_length_from_top_to_bottom() -> None:
    (axes,) = startup_bars(SECONDS).figure.axes
    assert [bar.get_width() for bar in axes.patches] == list(SECONDS.values())
    assert [label.get_text() for label in axes.get_yticklabels()] == list(SECONDS)
    bottom, top = axes.get_ylim()
    assert bottom > top


def test_each_bar_tells_its_time_and_how_many_times_the_shortest_it_is() -> None:
    (axes,) = startup_bars(SECONDS).figure.axes
    assert [text.get_text() for text in axes.texts] == ["4.2 s  (100×)", "0.084 s  (2×)", "0.042 s"]


def test_the_text_is_the_same_for_other_times() -> None:
    other = startup_bars({name: 3 * value for name, value in SECONDS.items()})
    assert startup_bars(SECONDS).text == other.text
    assert "spawn, fork, rank server" in other.text


@pytest.mark.parametrize("seconds", [{}, {"spawn": 1.0, "fork": 0.0}])
def test_nothing_measured_is_refused(seconds: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="greater than 0"):
        startup_bars(seconds)
