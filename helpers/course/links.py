"""Turn words such as "notebook 05" into links between notebooks.

`build` inserts the links into the learner's copies, so that the solved notebooks stay readable as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

# Fenced blocks, code spans, formulas, existing links and headings are not changed (a link in a heading would
# become part of the address that JupyterLab makes for the heading).
_KEPT = r"```.*?```|`[^`\n]*`|\$[^$\n]*\$|!?\[[^\]]*\]\([^)]*\)|^#.*?$"
_NAMED = r"\b[Nn]otebooks? \d\d(?:(?:, | and | or | to |, and )\d\d)*\b"
_NOTEBOOK_MENTION_PATTERN = re.compile(
    f"(?P<kept>{_KEPT})|(?P<named>{_NAMED})", re.DOTALL | re.MULTILINE
)


def files_by_number(files: Iterable[str]) -> dict[str, str]:
    """Return {number: file} of notebooks, such as {"05": "05_collective_algorithms.ipynb"}."""
    return {file[:2]: file for file in files}


def link_notebooks(markdown: str, files: Mapping[str, str]) -> str:
    """Return the text with a link for each mentioned notebook. files: {number: file} of all notebooks."""
    return _NOTEBOOK_MENTION_PATTERN.sub(
        lambda match: match["kept"] or _replace_links(match["named"], files), markdown
    )


def _replace_links(mention: str, files: Mapping[str, str]) -> str:
    """Make "notebook 05" one link; in "notebooks 05 and 06", link each number."""
    pattern = r"\d\d" if mention[8:9] == "s" else r"(?:[Nn]otebook )?\d\d"
    return re.sub(pattern, lambda match: _make_link(match[0], match[0][-2:], files), mention)


def _make_link(words: str, number: str, files: Mapping[str, str]) -> str:
    return f"[{words}]({files[number]})" if number in files else words
