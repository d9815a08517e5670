"""Remove results of files that are no longer handed in.

A learner who has left the class or withdrawn a file must not appear in pages, records or `course mistakes`.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from helpers.grading.cache import reporting_write_errors
from helpers.grading.record import from_json


def remove_withdrawn(folder: Path, kept_paths: Collection[Path]) -> list[str]:
    """Remove the records that are not in `kept_paths`. Return the names of their learners."""
    learners = set()
    for path in sorted(set(folder.glob("*.json")) - set(kept_paths)):
        with suppress(OSError, ValueError):  # a damaged record does not contain its learner's name
            learners.add(from_json(json.loads(path.read_text(encoding="utf-8"))).learner)
        with reporting_write_errors(path):
            path.unlink(missing_ok=True)
    return sorted(learners)
