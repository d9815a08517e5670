from __future__ import annotations

import pytest

from helpers.trace.events import Diagnosis
from helpers.views.timeline import timeline
from helpers.views.wait_graph import wait_graph
from tests.views.builders import ping_pong, receive_first


@pytest.fixture(scope="session", autouse=True)
def fonts_are_loaded() -> None:
    """Draw once in each font: matplotlib keeps their files open, which is not a test's leak."""
    timeline(ping_pong())._repr_png_()
    wait_graph(Diagnosis("cycle", "", "", receive_first()))._repr_png_()
