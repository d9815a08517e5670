"""Find submissions: one file or folder for each learner, or a platform's export.

    file --kind (from its contents)--> hand-in --owner (from its folder, then its name)--> Job

Files are judged by their contents, and names are only hints. A file that is not a notebook but may be a
learner's work also becomes a job. It is reported as unreadable, with the reason, so that its learner does not
disappear. `owners` interprets names, and `checks.check_notebook.find_answers` finds the exercises in a file.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from helpers.answers.file_kinds import looks_like_notebook
from helpers.answers.notebook import MAX_FILE_BYTES
from helpers.checks.headings import headings
from helpers.grading.grade_options import CannotGrade
from helpers.grading.names import Source, find_notebook_names, is_feedback_name, printable
from helpers.grading.owners import (
    files_of_platforms,
    find_sources,
    is_export,
    name_learners,
    platform_sources,
)
from helpers.grading.platforms.protocol import Entries

# Maximum number of notebooks in one learner's folder: some copies of each notebook of the course.
MAX_FILES = 100
# Maximum number of examined files and folders in one learner's folder.
MAX_ENTRIES = 20_000
_MAX_DEPTH = 4
# Maximum number of other files that are listed if a learner has handed in no notebook.
_MAX_OTHER_FILES = 5
_HEAD_BYTES = 1 << 20
# Files of systems and tools, which are not meant as submissions.
_IGNORED_NAMES_PATTERN = re.compile(
    r"\._.*|\.~.*|~\$.*|__MACOSX|__pycache__|Thumbs\.db|desktop\.ini|\.(?:DS_Store|ipynb_checkpoints|git\w*"
    r"|venv|vscode|idea|virtual_documents|Trash.*|cache|config|local|jupyter|ipython|keep|fseventsd|Spotlight.*)"
)
# The map of the course, which `course lab` puts into every learner's folder.
_OURS = "home.ipynb"
# Files that instructors keep next to the submissions.
_INSTRUCTORS_PATTERN = re.compile(
    r"(?:readme|license|makefile)\b.*|.*\.(?:md|csv|tsv|xlsx?|ods|toml|ya?ml|log|lock)", re.I
)
_ARCHIVE_PATTERN = re.compile(r".*\.(?:zip|rar|7z|tar|tgz|tar\.\w+)", re.I)
# Folders of one learner that may contain the same notebook.
_OWN_FOLDERS_PATTERN = re.compile(
    r"work|notebooks|solutions?|tests?|docs|old|new|backups?|archive|final|drafts?|versions?|cop(?:y|ies)"
    r"|submi\w+|release|source|autograded",
    re.I,
)
# If a cell's source is one string, the escape sequence of a newline or a tab may precede the word.
_DEFINED_PATTERN = re.compile(rb"(?:\b|\\[nrt])(?:def|class) +(\w+)")


class NoSubmissions(CannotGrade):
    """The folder contains nothing to grade. The message is one line with the problem and advice."""


@dataclass(frozen=True)
class Job:
    """One submission to grade.

    Args:
        path: The file.
        file: The file's path relative to the class's folder.
        file_count: The number of files handed in by the file's learner, including this file.
    """

    learner: str
    path: Path
    file: str
    file_count: int = 1


@dataclass(frozen=True)
class Submissions:
    """The submissions. sources: {learner's name: its source}. notices: lines for the instructor."""

    jobs: tuple[Job, ...]
    sources: dict[str, Source]
    notices: tuple[str, ...]


@dataclass
class _Found:
    """The files of one source.

    others: files that count as handed in only if there is no notebook. attempts: the time at which each file
    was handed in, if the platform's file names contain the time.
    """

    files: list[Path] = field(default_factory=list)
    attempts: dict[Path, str] = field(default_factory=dict)
    others: list[Path] = field(default_factory=list)
    empty: list[Path] = field(default_factory=list)


def find_submissions(folder: Path, instructor_files: Collection[Path] = ()) -> Submissions:
    """Return the submissions to grade, in order. instructor_files: the instructor's files in the folder.

    Raises:
        NoSubmissions: There is nothing to grade.
    """
    if not folder.is_dir():
        if _ARCHIVE_PATTERN.fullmatch(folder.name) and folder.exists():
            raise NoSubmissions(f"{folder} is an archive: unpack it, and pass the folder.")
        what = "is not a folder" if folder.exists() else "does not exist"
        raise NoSubmissions(f"{folder} {what}: pass the folder with the submissions.")
    notices: list[str] = []
    found: dict[Source, _Found] = {}
    shared = _class_folders(folder)
    skipped = set(map(os.path.abspath, [*instructor_files, *shared]))
    for here in shared:
        _add_class_folder(here, folder, skipped, found, notices)
    found = {
        source: each for source, each in found.items() if each.files or each.others or each.empty
    }
    learners = name_learners(found, notices)
    for each in found.values():
        each.files = _newest_attempts(each, folder, notices)
    jobs = [
        Job(learners[source], path, _relative_path(path, folder))
        for source, each in found.items()
        for path in _learner_files(each)
    ]
    if not jobs:
        raise NoSubmissions(
            f"{folder} contains no notebook (.ipynb): pass the folder with the submissions."
        )
    count = Counter(job.learner for job in jobs)
    jobs = [replace(job, file_count=count[job.learner]) for job in jobs]
    jobs.sort(key=lambda job: (job.learner, job.file))
    sources = {learner: source for source, learner in learners.items()}
    return Submissions(tuple(jobs), sources, tuple(notices))


def _learner_files(submission: _Found) -> Sequence[Path]:
    """Return a learner's notebooks or, if there are none, the other files or the empty folder."""
    if not submission.files:
        return (
            submission.others
            if 0 < len(submission.others) <= _MAX_OTHER_FILES
            else submission.empty
        )
    named = {name for path in submission.files for name in find_notebook_names(path.name)}
    # ignore an export if its notebook was also handed in
    alone = (path for path in submission.others if {*find_notebook_names(path.name)} - named)
    return [*submission.files, *alone]


# --- folders of a class, folders of one learner -------------------------------------------------------


def _class_folders(folder: Path) -> list[Path]:
    """Return the class's folder, and the folders below it that contain several learners' files.

    These are unpacked exports, the folders that lead to them, and folders named like a notebook. A folder's
    only subfolder is also included if the folders in it contain the same notebook. A folder that a platform
    has named after a learner is not searched: this learner has chosen everything below it.
    """
    entries = _list_entries(folder)
    folders = _unowned_folders(entries)
    if len(entries.folders) == 1 == len(folders) and not entries.files:
        (name,) = folders
        if _holds_learners(folder / name):
            return [folder, *_class_folders(folder / name)]
    found = [folder]
    for name in folders:
        found += (
            [folder / name]
            if find_notebook_names(name)
            else _exports(folder / name, _MAX_DEPTH - 1)
        )
    return found


def _exports(here: Path, depth: int) -> list[Path]:
    entries = _list_entries(here)
    folders = _unowned_folders(entries) if depth else []
    below = [each for name in folders for each in _exports(here / name, depth - 1)]
    return [here, *below] if below or is_export(entries) else []


def _unowned_folders(entries: Entries) -> list[str]:
    """Return the folders that no platform has named after a learner."""
    owned = platform_sources(entries)
    return [name for name in entries.folders if name not in owned]


def _holds_learners(here: Path) -> bool:
    """Return whether subfolders contain copies of the same notebook, as learners' folders do."""
    entries = _list_entries(here)
    if is_export(entries):
        return True
    paths = [path for name in entries.folders for path in _notebooks_below(here / name)]
    return len(_with_same_notebook(here, paths)) > 1


def _with_same_notebook(here: Path, paths: Sequence[Path]) -> set[str]:
    """Return the largest set of folders in `here` that contain a notebook of the same name.

    Folders that a learner may have made, such as `old` or `backup`, and folders for feedback are left out.
    """
    by_name: dict[str, set[str]] = {}
    for path in paths:
        first, *rest = path.relative_to(here).parts
        is_learners_own = _OWN_FOLDERS_PATTERN.fullmatch(first) or is_feedback_name(first)
        if rest and not is_learners_own and not find_notebook_names(first):
            by_name.setdefault(path.name.casefold(), set()).add(first)
    return max(by_name.values(), key=len, default=set())


def _notebooks_below(here: Path, depth: int = 2) -> Iterator[Path]:
    entries = _list_entries(here)
    yield from (here / name for name in entries.files if name.lower().endswith(".ipynb"))
    if depth:
        for name in entries.folders:
            yield from _notebooks_below(here / name, depth - 1)


def _list_entries(here: Path) -> Entries:
    """Return the names of the folders and files in a folder, except hidden ones and links."""
    folders: list[str] = []
    files: list[str] = []
    with suppress(OSError), os.scandir(here) as listing:
        for entry in islice(listing, MAX_ENTRIES):
            if (
                not entry.name.startswith(".")
                and not _IGNORED_NAMES_PATTERN.fullmatch(entry.name)
                and not entry.is_symlink()
            ):
                (folders if entry.is_dir() else files).append(entry.name)
    return Entries(tuple(sorted(folders)), tuple(sorted(files)), here.name)


def _add_class_folder(
    here: Path,
    folder: Path,
    skipped: Collection[str],
    files_by_source: dict[Source, _Found],
    notices: list[str],
) -> None:
    """Add the contents of a class's folder. Each folder and each file in it belongs to one learner."""
    folders: list[str] = []
    files: dict[str, str] = {}
    for entry in _entries(here, folder, notices):
        path = Path(entry.path)
        if os.path.abspath(path) in skipped:
            continue
        if entry.is_dir(follow_symlinks=False):
            folders.append(entry.name)
        elif _is_handed_in(entry.name):
            files[entry.name] = _notebook_in(path)
        else:
            notices.append(f"{_relative_path(path, folder)}: not a notebook, ignored")
    added = files_of_platforms(Entries(tuple(folders), tuple(files), here.name))
    files = {name: notebook for name, notebook in files.items() if name not in added}
    entries = Entries(tuple(folders), tuple(files), here.name)
    for name, source in find_sources(entries, files).items():
        path = here / name
        if source.is_feedback:
            notices.append(_feedback_notice(path, folder, source))
            continue
        own = files_by_source.setdefault(source, _Found())
        before = {*own.files}
        if name not in files:
            _add_folder(own, source, path, folder, notices)
        else:
            is_notebook = path.is_symlink() or _may_be_notebook(path)
            (own.files if is_notebook else own.others).append(path)
            if find_notebook_names(source.name):
                notices.append(
                    f"{_relative_path(path, folder)}: its name does not show which "
                    f"learner it belongs to"
                )
        if source.attempt:
            own.attempts |= {each: source.attempt for each in own.files if each not in before}


def _newest_attempts(submission: _Found, folder: Path, notices: list[str]) -> list[Path]:
    """Return a learner's notebooks, except notebooks replaced by a later attempt.

    An attempt replaces only earlier attempts at the same notebook, because it may contain just one of many
    files.
    """
    newest: dict[str, str] = {}
    by_file = {path: _notebook_in(path) or path.name for path in submission.attempts}
    for path, attempt in submission.attempts.items():
        newest[by_file[path]] = max(attempt, newest.get(by_file[path], ""))
    replaced = [path for path, at in submission.attempts.items() if at < newest[by_file[path]]]
    notices += [
        f"{_relative_path(path, folder)}: a later attempt of the same learner counts in its place"
        for path in replaced
    ]
    return [path for path in submission.files if path not in replaced]


def _is_handed_in(name: str) -> bool:
    """Return whether a file in a class's folder was handed in, so is not one of the instructor's files."""
    return (
        not _INSTRUCTORS_PATTERN.fullmatch(name)
        or bool(find_notebook_names(name))
        or is_export(Entries((), (name,)))
    )


def _feedback_notice(path: Path, folder: Path, source: Source) -> str:
    name = _relative_path(path, folder)
    return f"{name}: feedback for {printable(source.name)}, not counted as handed in"


def _add_folder(
    submission: _Found, source: Source, top: Path, folder: Path, notices: list[str]
) -> None:
    """Search one learner's folder within limits, so that a huge folder does not delay other learners.

    Folders for feedback and files added by a platform are left out, because they are not the learner's work.
    """
    name, before = printable(top.name), len(submission.files)
    todo, looked = [(top, 1)], 0
    has_own_files = has_added_files = False
    while todo:
        here, depth = todo.pop()
        listing = list(_entries(here, folder, notices))
        added = files_of_platforms(
            Entries(
                tuple(each.name for each in listing if each.is_dir(follow_symlinks=False)),
                tuple(each.name for each in listing if each.is_file(follow_symlinks=False)),
                here.name,
            )
        )
        for entry in listing:
            looked += 1
            if looked > MAX_ENTRIES:
                notices.append(f"{name}: more than {MAX_ENTRIES:,} files, the others were ignored")
                return
            path = Path(entry.path)
            if entry.is_symlink():
                notices.append(f"{_relative_path(path, folder)}: a symbolic link, ignored")
            elif entry.is_dir(follow_symlinks=False):
                if is_feedback_name(entry.name):
                    has_added_files = True
                    notices.append(_feedback_notice(path, folder, source))
                elif depth < _MAX_DEPTH:
                    todo.append((path, depth + 1))
            elif entry.name in added:
                has_added_files = True
            elif not _may_be_notebook(path):
                has_own_files = True
                submission.others += [path] * (len(submission.others) <= _MAX_OTHER_FILES)
            elif len(submission.files) - before >= MAX_FILES:
                notices.append(f"{name}: more than {MAX_FILES} notebooks, the others were ignored")
                return
            else:
                submission.files.append(path)
    if len(submission.files) == before:
        if has_own_files or not has_added_files:
            submission.empty.append(top)
        notices.append(
            f"{_relative_path(top, folder)}: no notebook was found in this folder and its subfolders"
        )
    if len(same := _with_same_notebook(top, submission.files[before:])) > 1:
        folders = ", ".join(map(printable, sorted(same)[:4]))
        notices.append(
            f"{name}: treated as one learner's folder, although its subfolders ({folders}) contain "
            f"the same notebook. If they are several learners', move them up next to {name}, or "
            f"grade {name} itself"
        )


# --- files --------------------------------------------------------------------------------------------


def _may_be_notebook(path: Path) -> bool:
    """Return whether a file in a learner's folder is, or may contain, a notebook."""
    name = path.name.lower()
    return (
        ".ipynb" in name
        or _ARCHIVE_PATTERN.fullmatch(name) is not None
        or looks_like_notebook(_read_head(path))
    )


def _notebook_in(path: Path) -> str:
    """Return the notebook with the most exercises that a file's text seems to define, or "".

    The text is not parsed, because the result is used only to interpret names. The exercises to grade are
    determined by the cells.
    """
    known = headings()
    names = {
        each.decode()
        for each in _DEFINED_PATTERN.findall(_read_head(path, MAX_FILE_BYTES))
        if each.isascii()
    }
    count = Counter(known[name].notebook for name in names if name in known)
    return max(sorted(count), key=lambda each: count[each], default="")


def _read_head(path: Path, max_bytes: int = _HEAD_BYTES) -> bytes:
    """Return the first bytes of a regular file, or b"" if the file cannot be read."""
    # With O_NONBLOCK, opening a fifo does not wait for a writer. With O_NOFOLLOW, links are not opened.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    with suppress(OSError):
        if path.is_file() and not path.is_symlink():
            with open(os.open(path, flags), "rb") as file:
                return file.read(max_bytes)
    return b""


def _entries(here: Path, folder: Path, notices: list[str]) -> Iterator[os.DirEntry[str]]:
    """Yield a folder's entries in order, without litter and hidden folders that contain no notebook."""
    try:
        # One more entry than the limit shows that there are too many, without reading all of them.
        with os.scandir(here) as found:
            entries = sorted(islice(found, MAX_ENTRIES + 1), key=lambda entry: entry.name)
    except OSError as error:
        notices.append(f"{_relative_path(here, folder)}: cannot be opened ({error.strerror})")
        return
    for entry in entries:
        if _IGNORED_NAMES_PATTERN.fullmatch(entry.name) or (
            entry.name == _OURS and not _notebook_in(Path(entry.path))
        ):
            continue
        if not entry.name.startswith(".") or _is_hidden_hand_in(entry, here == folder):
            yield entry


def _is_hidden_hand_in(entry: os.DirEntry[str], is_top: bool) -> bool:
    path = Path(entry.path)
    if entry.is_dir(follow_symlinks=False):
        return is_top and any(_notebooks_below(path))
    return _may_be_notebook(path)


def _relative_path(path: Path, folder: Path) -> str:
    return printable(str(path.relative_to(folder)))
