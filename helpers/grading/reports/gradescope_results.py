"""Turn a graded folder into Gradescope's results.json; run_autograder calls it inside the container.

python -m helpers.grading.reports.gradescope_results OUT RESULTS [NOTEBOOK ...]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from helpers.grading.record import read_records
from helpers.grading.reports.files import open_folder
from helpers.grading.reports.gradescope import results_json


def main(out: Path, results: Path, notebooks: Sequence[str] = ()) -> None:
    """Read the records that `course grade` wrote below `out`, and write the results file."""
    with open_folder(results.parent) as folder:
        folder.write(results.name, results_json(read_records(out), notebooks))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
