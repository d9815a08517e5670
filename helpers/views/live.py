"""Whether a page can show widgets now. Asked by the quizzes and by the cost explorer."""

from __future__ import annotations

import os

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def widgets_can_live() -> bool:
    """Say whether this is a notebook's kernel whose displays are for a reader, not for a file."""
    if os.environ.get("REAL_RANKS_LIVE") == "0":
        return False
    from IPython import get_ipython

    return hasattr(get_ipython(), "kernel")
