"""Makes `pytest --nbval solutions` run the cells as JupyterLab does."""

from __future__ import annotations

from tests.notebooks.as_in_jupyterlab import pytest_configure

__all__ = ["pytest_configure"]
