"""Return advice on a module or a file that was not found, if the error shows why it is missing."""

from __future__ import annotations

import re

from helpers.ranks.failures import RankFailed

_NO_MODULE_ADVICE = (
    "The course's environment has no such package. If the module is your own file, copy its code into a "
    "cell: only the notebook is handed in, and a check finds no other file."
)
_NOT_WRITTEN_YET_ADVICE = (
    "The file doesn't exist yet when this line runs. If a different rank writes it, wait until it "
    "has done so, for example at a barrier, or in a store's `get`, which waits for its key."
)
_NO_FILE_ADVICE = (
    "No file with this name exists when this line runs, because a check starts in an empty folder. "
    "If a rank writes the file, the other ranks must wait until it has done so. If the file is "
    "your own, write the required contents into a cell: only the notebook is handed in."
)
# A folder that a launch made for its ranks. Its files were made by the program or for the program.
_FOLDER_OF_LAUNCH_PATTERN = re.compile(r"/world-\d+/")


def missing_file_advice(failure: RankFailed) -> str:
    """Return advice if a module or a file is missing, and "" for every other failure."""
    if failure.error.kind == "ModuleNotFoundError":
        return _NO_MODULE_ADVICE
    if failure.error.kind != "FileNotFoundError":
        return ""
    in_launch = _FOLDER_OF_LAUNCH_PATTERN.search(failure.error.message)
    return _NOT_WRITTEN_YET_ADVICE if in_launch else _NO_FILE_ADVICE
