from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from helpers.views.timeline import timeline
from tests.views.builders import event, ping_pong, trace_of_rows


def test_importing_the_views_does_not_import_matplotlib_or_torch() -> None:
    code = (
        "import sys, helpers.views.lanes, helpers.views.timeline, helpers.views.traffic, "
        "helpers.views.wait_graph; print({'matplotlib', 'torch', 'numpy'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_picture_is_saved_by_its_ending(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"out.{ending}"
    timeline(ping_pong()).save(path)
    start = {"png": b"\x89PNG", "svg": b"<?xml"}[ending]
    assert path.read_bytes().startswith(start)


def test_pyplot_never_hears_of_a_picture() -> None:
    code = (
        "import sys; from tests.views.builders import ping_pong; "
        "from helpers.views.timeline import timeline; "
        "timeline(ping_pong())._repr_png_(); print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "False"


@pytest.mark.filterwarnings("error")
def test_a_label_that_the_font_lacks_is_drawn_without_a_warning() -> None:
    row = [event(0, 0, "span", 0, 9, call="計算 🚀")]
    assert timeline(trace_of_rows(2, [row]))._repr_png_()
