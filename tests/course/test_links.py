"""Test that notebooks' names in a text become links."""

from __future__ import annotations

import pytest

from helpers.course.links import files_by_number, link_notebooks

FILES = files_by_number(["05_algorithms.ipynb", "06_deadlocks.ipynb"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see notebook 05.", "see [notebook 05](05_algorithms.ipynb)."),
        ("Notebook 05's ring", "[Notebook 05](05_algorithms.ipynb)'s ring"),
        ("notebooks 05 and 06", "notebooks [05](05_algorithms.ipynb) and [06](06_deadlocks.ipynb)"),
        ("notebook 05 or 06", "[notebook 05](05_algorithms.ipynb) or [06](06_deadlocks.ipynb)"),
        ("notebook 07 has none", "notebook 07 has none"),
        ("notebook 050", "notebook 050"),
        ("`notebook 05` in code", "`notebook 05` in code"),
        ("```\nnotebook 05\n```", "```\nnotebook 05\n```"),
        ("## After notebook 05", "## After notebook 05"),
        ("[notebook 05](elsewhere)", "[notebook 05](elsewhere)"),
    ],
)
def test_notebook_names_become_links(text: str, expected: str) -> None:
    assert link_notebooks(text, FILES) == expected
