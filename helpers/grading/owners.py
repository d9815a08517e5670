"""Find the owner of a file from the names of its folder and of the file.

    name --form of a platform, or without notebook's name and copy marks--> Source --name_learners--> learner

Names are only hints, and never cause two people to be merged: similar names are kept separate and reported.
The forms of each platform's names are in `platforms`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from helpers.grading.names import (
    Source,
    clean_name,
    find_notebook_names,
    notebook_pattern,
    stem_of,
    without_copy,
)
from helpers.grading.platforms import PLATFORMS
from helpers.grading.platforms.protocol import Entries

_JOINING_CHARS = ("_", "-", ".")
# Lower-case Cyrillic and Greek letters that look Latin: the most common ones, not all of Unicode.
_LOOKALIKES = str.maketrans("аеорсухіјѕԁԛԝһӏοαιν", "aeopcyxijsdqwhloaiv")


def find_sources(entries: Entries, notebooks: Mapping[str, str]) -> dict[str, Source]:
    """Return the owner of each folder and each file of one folder.

    All names are examined together, because a single name does not show whether its number is a platform's.
    notebooks: {file name: its notebook, or ""}.
    """
    sources = {name: Source(clean_name(name), f"{name}/") for name in entries.folders}
    sources |= {name: _file_source(stem_of(name), notebooks[name]) for name in entries.files}
    return _separate_same_names(sources | platform_sources(entries))


def platform_sources(entries: Entries) -> dict[str, Source]:
    """Return the owner of each entry whose name has a platform's form.

    If several platforms recognize an entry, the platform that recognizes the most entries takes precedence,
    because a learner can choose the end of a name, such as `leeann_12_34_HW 1_bray_attempt_...`.
    """
    found = [platform.sources(entries) for platform in reversed(PLATFORMS)]
    return {name: source for sources in sorted(found, key=len) for name, source in sources.items()}


def is_export(entries: Entries) -> bool:
    """Return whether a folder with these entries is a platform's export, not one learner's folder."""
    return any(platform.is_export(entries) for platform in PLATFORMS)


def files_of_platforms(entries: Entries) -> set[str]:
    """Return the files that platforms have added to an export or to a learner's folder."""
    return {name for platform in PLATFORMS for name in platform.added_files(entries)}


def name_learners(sources: Iterable[Source], notices: list[str]) -> dict[Source, str]:
    """Return the learner's name for each source. Among similar names, at most one is kept unchanged.

    Similar names differ in a trailing space, case, accents (composed or not), or letters of a different
    script. No learner may get, or lose, another learner's points.
    """
    alike: dict[str, list[Source]] = {}
    for source in sorted(set(sources), key=lambda each: (each.spelling, each.platform)):
        alike.setdefault(_comparison_key(source.name), []).append(source)
    names = {}
    for same in alike.values():
        for source in same:
            alone = len(same) == 1 or source is _keeper(source.name, same)
            names[source] = (
                source.name if alone else f"{source.name} ({_distinguishing_text(source)})"
            )
        if len(same) > 1:
            different = ", ".join(_distinguishing_texts(same))
            notices.append(
                f"{same[0].name}: {len(same)} submissions have this name or a similar one. They "
                f"are kept apart: {different}"
            )
    return names


def _separate_same_names(sources: Mapping[str, Source]) -> dict[str, Source]:
    """Add the platform's number to the spelling of learners who share a name in one export.

    Other numbers are left out, because a person's number may differ between assignments.
    """
    numbered = {each.key for each in PLATFORMS if each.numbers_tell_apart}
    numbers: dict[str, set[str]] = {}
    for source in sources.values():
        if source.platform in numbered:
            numbers.setdefault(source.name, set()).add(source.number)
    return {
        entry: replace(source, spelling=f"{source.name} ({source.number})")
        if len(numbers.get(source.name, ())) > 1 and source.platform in numbered
        else source
        for entry, source in sources.items()
    }


# --- files ------------------------------------------------------------------------------------------


def _file_source(stem: str, notebook: str) -> Source:
    name = _without_notebook(without_copy(stem), notebook)
    return Source(clean_name(name), name)


def _without_notebook(stem: str, notebook: str) -> str:
    """Remove a notebook's name, and the character next to it, from a file's name.

    A notebook's number without its title is removed only if the file contains this notebook, for example in
    anna_02, but not in student_02.
    """
    for name in find_notebook_names(stem):
        if found := notebook_pattern(name).search(stem):
            before, after = stem[: found.start()], stem[found.end() :]
            before = before[:-1] if before.endswith(_JOINING_CHARS) else before
            after = after[1:] if after.startswith(_JOINING_CHARS) else after
            stem = "_".join(filter(None, map(without_copy, (before, after)))) or stem
    if number := notebook[:2]:
        shorter = re.sub(rf"^{number}[-_. ]|[-_. ]{number}$", "", stem, count=1)
        stem = without_copy(shorter) or stem
    return stem


# --- names ------------------------------------------------------------------------------------------


def _comparison_key(name: str) -> str:
    folded = unicodedata.normalize("NFKC", " ".join(name.split())).casefold()
    return folded.translate(_LOOKALIKES).strip("_-.")


def _keeper(name: str, same: Sequence[Source]) -> Source | None:
    """Return the source that keeps a name: a folder with exactly this name, otherwise a file."""
    spelled = [each for each in same if each.name == name == each.spelling.removesuffix("/")]
    folders = [each for each in spelled if each.spelling.endswith("/")]
    return next((found[0] for found in (folders, spelled) if len(found) == 1), None)


def _distinguishing_text(source: Source) -> str:
    return source.number or repr(source.spelling)[:120]


def _distinguishing_texts(sources: Sequence[Source]) -> list[str]:
    """Return, for each source, text that shows a reader how it differs from the others."""
    texts = list(map(_distinguishing_text, sources))
    looks = {unicodedata.normalize("NFKC", each).translate(_LOOKALIKES) for each in texts}
    return texts if len(looks) == len(texts) else list(map(ascii, texts))
