from __future__ import annotations

import pytest

from helpers.exercises.nb05_collective_algorithms.pictures import traffic_grid
from helpers.trace.events import Trace
from tests.views.builders import ping_pong, ring


def test_text_summarizes_each_map() -> None:
    picture = traffic_grid({"pair": ping_pong(2), "silent": Trace(3)})
    assert picture.text == (
        "pair: 2 links used, 1.6 kB in all, 800 B at most on one link; rank 0 sends most, 800 B\n"
        "silent: no bytes"
    )


def test_maps_share_one_color_scale() -> None:
    picture = traffic_grid({"small": ping_pong(1), "large": ping_pong(3)})
    images = [image for axes in picture.figure.axes[:2] for image in axes.images]
    assert [image.get_clim() for image in images] == [(0, 1200), (0, 1200)]
    assert picture.figure.axes[-1].get_ylabel() == "bytes sent [kB]"


def test_separates_rank_totals_from_cells() -> None:
    axes = traffic_grid({"pair": ping_pong(2)}).figure.axes[0]
    values = axes.images[0].get_array()
    assert values is not None
    assert values.filled(-1).tolist() == [[-1, 800, -1, 800], [800, -1, -1, 800]]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0", "1", "all"]


@pytest.mark.extended
def test_unused_grid_places_stay_empty() -> None:
    runs = {f"{n}": ring(n, 2) for n in range(2, 7)}
    picture = traffic_grid(runs, columns=3)
    drawn = [axes for axes in picture.figure.axes if axes.images]
    assert len(drawn) == 5 and picture._repr_png_() == traffic_grid(runs, columns=3)._repr_png_()


def test_draws_nothing_without_runs() -> None:
    assert traffic_grid({}).text == "no runs, so nothing is drawn"
    assert traffic_grid({"silent": Trace(2)}, columns=0)._repr_png_()


def test_rejects_values_other_than_runs() -> None:
    with pytest.raises(TypeError, match="not from int"):
        traffic_grid({"a": 1})  # type: ignore[dict-item]
