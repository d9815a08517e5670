from __future__ import annotations

import struct
import subprocess
import sys
from base64 import b64decode
from io import BytesIO
from pathlib import Path

import pytest
from IPython.core.formatters import DisplayFormatter
from PIL import Image, ImageChops

from helpers.views.curve import curves
from helpers.views.picture import Picture, new_figure
from helpers.views.timeline import timeline
from helpers.views.traffic import traffic
from tests.views.builders import event, ping_pong, trace_of_rows


def test_importing_views_avoids_matplotlib_and_torch() -> None:
    code = (
        "import sys, helpers.views.lanes, helpers.views.timeline, helpers.views.traffic, "
        "helpers.views.wait_graph; print({'matplotlib', 'torch', 'numpy'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_file_extension_selects_picture_format(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"out.{ending}"
    timeline(ping_pong()).save(path)
    start = {"png": b"\x89PNG", "svg": b"<svg"}[ending]
    assert path.read_bytes().startswith(start)


def test_pictures_never_import_pyplot() -> None:
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
def test_draws_missing_glyphs_without_warning() -> None:
    row = [event(0, 0, "span", 0, 9, call="計算 🚀")]
    assert timeline(trace_of_rows(2, [row]))._repr_png_()


@pytest.mark.filterwarnings("error")
def test_draws_negative_fit_without_warning() -> None:
    negative = [(-1.0, -1e-4), (-4.0, -2e-4)]
    assert curves({"fit": negative}, x="n [bytes]", y="time [s]", log="xy")._repr_png_()


@pytest.mark.sample(2)
@pytest.mark.parametrize("width", [4.35, 5.3, 6.0, 7.35, 8.21])
def test_png_pixels_match_matplotlib_output(width: float) -> None:
    figure = new_figure(width, 2.3)
    figure.subplots().plot([0, 2, 1])
    picture = Picture(figure, "")
    for dpi in (110, 220):
        saved = BytesIO()
        figure.savefig(saved, format="png", dpi=dpi)
        expected = Image.open(saved).convert("RGB")
        found = Image.open(BytesIO(picture._png(dpi))).convert("RGB")
        assert found.size == expected.size
        # a palette has fewer colors
        assert max(high for _, high in ImageChops.difference(found, expected).getextrema()) < 16


@pytest.mark.parametrize("is_live", [True, False])
def test_live_page_doubles_picture_resolution(
    is_live: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("helpers.views.picture.widgets_can_live", lambda: is_live)
    picture = traffic(ping_pong())
    data, about = DisplayFormatter().format(picture)
    stored, shown = (
        struct.unpack(">II", png[16:24])
        for png in (
            picture._repr_png_(),
            b64decode(data["image/png"]),
        )
    )
    assert data["text/plain"] == picture.text
    if is_live:
        room = {"width": stored[0], "height": stored[1]}
        assert about["image/png"] == room | {"alt": picture.text}
        assert shown == (2 * stored[0], 2 * stored[1])
    else:
        assert shown == stored and about["image/png"] == {"alt": picture.text}
