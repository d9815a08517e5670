"""Find out whose a file is, from the names of its folder and of the file.

    name --form of a platform, or notebook's name and copy marks off--> Source --name_learners--> learner

Names are only hints and never merge two people: similar names are kept apart and reported. The forms are
taken from the platforms' own code:
- Moodle, mod/assign/classes/downloader.php: `Ann Lee_22_assignsubmission_file/x.ipynb`, or in one folder
  `Ann Lee_22_assignsubmission_file_x.ipynb`; `Participant_1011_...` in blind marking, `Team A_7_...`.
- Canvas, lib/content_zipper.rb: `leeann_LATE_123_456_x.ipynb` (user, upload),
  `LATE_anon_Ab3dE_456_x.ipynb`, `leeann_123_text.html`.
- GitHub Classroom, `gh classroom clone student-repos`: `lab-submissions/lab-login/`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from helpers.checks.headings import all_names_of, notebooks

_MOODLE_PATTERN = re.compile(
    r"(?P<who>.+?)(?:_(?P<number>\d+))?_assign(?:submission|feedback)_[a-z]+(?:_(?P<rest>.*))?",
    re.S,
)
_CANVAS_PATTERN = re.compile(
    r"(?P<who>.+?)(?:_LATE)?_(?P<number>[1-9]\d*)_(?:(?P<upload>[1-9]\d*)_(?P<rest>.+)|text|link)",
    re.S,
)
_ANONYMOUS_PATTERN = re.compile(
    r"(?:LATE_)?(?P<who>anon_[^\W_]+)_(?P<upload>[1-9]\d*)_(?P<rest>.+)", re.S
)
_SUBMISSIONS = "-submissions"
# Moodle's word for a participant in blind marking ("participant" of mod/assign/lang), letters only. In a
# language that is not listed, the number becomes part of the name only if two such learners are in the
# export.
_PARTICIPANT_WORDS_PATTERN = re.compile(
    "participant|participante|partecipante|teilnehmerin|teilnehmer|teilnehmende|deelnemer|deltaker"
    "|deltagare|deltager|uczestnik|účastník|osallistuja|résztvevő|participantă|катысушы|участник"
    "|учасник|katılımcı|συμμετέχων|משתתף|مشارك|参加者|参与者|參與者|참가자"
)

# What browsers, systems and JupyterLab add to the name of a copy, in the most frequent languages.
_COPY = r"(?:copy|copie|copia|cópia|kopie|kopia|kopi|копия|副本|コピー|복사본)"
_COPY_BEFORE_PATTERN = re.compile(rf"^{_COPY}(?: \(\d+\))? (?:of|von|van|de|di|af|av|z|от) ", re.I)
_COPY_AFTER_PATTERN = re.compile(
    rf"(?:\s*\(\d+\)|\s*[-–—_ ]\s*{_COPY}\s?\d*|\s*\((?:\w+ )?{_COPY}(?: \d+)?\)|(?:的副本|のコピー)"
    # from synchronized folders: Dropbox "(Ann's conflicted copy 2026-10-12)", Nextcloud, Syncthing
    r"|\s*\([^()]*(?:conflict|konflikt|conflit)[^()]*\)|[._](?:sync-)?conflict-\d{8}-\d{6}(?:-\w+)?)$",
    re.I,
)
# File extensions with which a notebook may arrive. `x.ipynb.zip` has two of them.
_ENDING_PATTERN = re.compile(
    r"\.(?:ipynb|txt|json|zip|gz|tar|tgz|bz2|xz|rar|7z|html?|pdf|py|md|docx?|odt|rtf|bak|download|webloc|url"
    r"|gdoc|colab)$",
    re.I,
)
_JOINING_CHARS = ("_", "-", ".")
# Lower-case Cyrillic and Greek letters that look Latin: the most frequent ones, not all of Unicode.
_LOOKALIKES = str.maketrans("аеорсухіјѕԁԛԝһӏοαιν", "aeopcyxijsdqwhloaiv")

Platform = Literal["", "moodle", "canvas"]


@dataclass(frozen=True)
class Source:
    """The owner of a file, as far as names tell.

    Args:
        name: The learner's name.
        spelling: The text from which the name was read; a folder's ends with a slash. Sources with different
            spellings are different people.
        platform, number: The platform, and the learner's number there if the name contains one. Moodle's
            number counts the participants of one assignment, so it does not distinguish sources.
    """

    name: str
    spelling: str
    platform: Platform = ""
    number: str = field(default="", compare=False)


def printable(text: str) -> str:
    """Return at most 200 characters of a text, without characters that control a terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)[:200]


def only_letters(text: str) -> str:
    """Return a name's letters in lower case. The characters between them vary between files and tables."""
    return "".join(re.findall(r"[^\W\d_]+", unicodedata.normalize("NFC", text).casefold()))


def stem_of(name: str) -> str:
    """Return a file's name without the extensions with which a notebook may arrive."""
    while (shorter := _ENDING_PATTERN.sub("", name)) and shorter != name:
        name = shorter
    return name


def find_notebook_names(text: str) -> list[str]:
    """Return the course's notebooks that a text names, whatever characters separate the words."""
    return [name for name in notebooks() if _notebook_pattern(name).search(text)]


def folder_source(name: str, parent: str = "") -> Source:
    """Return the owner of a folder. parent: the name of the folder that contains it."""
    if found := _MOODLE_PATTERN.fullmatch(name):
        return _moodle_source(found)
    slug = parent.removesuffix(_SUBMISSIONS)
    if slug != parent and name.startswith(f"{slug}-") and len(name) > len(slug) + 1:
        name = name[len(slug) + 1 :]
    return Source(_clean_name(name), f"{name}/")


def file_sources(files: Mapping[str, str]) -> dict[str, Source]:
    """Return the owner of each file of one folder.

    All files are examined together, because only that shows whether the numbers in names are Canvas's.
    files: the notebook in each file, or "", by file name.
    """
    canvas = _canvas_sources([stem_of(name) for name in files])
    return {name: _file_source(stem_of(name), notebook, canvas) for name, notebook in files.items()}


def has_platform_names(folders: Iterable[str], files: Iterable[str], parent: str = "") -> bool:
    """Return whether a folder with these entries is a platform's export, not one learner's folder."""
    folders, stems = list(folders), list(map(stem_of, files))
    slug = parent.removesuffix(_SUBMISSIONS)
    cloned = slug != parent and any(name.startswith(f"{slug}-") for name in folders)
    moodle = any(_MOODLE_PATTERN.fullmatch(name) for name in (*folders, *stems))
    return cloned or moodle or len({source.name for source in _canvas_sources(stems).values()}) > 1


def name_learners(sources: Iterable[Source], notices: list[str]) -> dict[Source, str]:
    """Return the learner's name for each source. Of similar names at most one is kept unchanged.

    Similar names differ in a trailing space, case, accents (composed or not), or letters of a different
    script. No learner may get, or lose, the points of a different one.
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
                f"{same[0].name}: {len(same)} submissions have this name or one that looks like it. They are "
                f"kept apart: {different}"
            )
    return names


def separate_same_names(sources: Mapping[str, Source]) -> dict[str, Source]:
    """Put Moodle's number into the spelling of learners who share a name in one export.

    Other numbers are left out, because a person's number differs between assignments.
    """
    numbers: dict[str, set[str]] = {}
    for source in sources.values():
        if source.platform == "moodle":
            numbers.setdefault(source.name, set()).add(source.number)
    return {
        entry: replace(source, spelling=f"{source.name} ({source.number})")
        if len(numbers.get(source.name, ())) > 1 and source.platform == "moodle"
        else source
        for entry, source in sources.items()
    }


# --- files ------------------------------------------------------------------------------------------


def _file_source(stem: str, notebook: str, canvas: Mapping[str, Source]) -> Source:
    if found := _MOODLE_PATTERN.fullmatch(stem):
        return _moodle_source(found)
    if stem in canvas:
        return canvas[stem]
    name = _without_notebook(_without_copy(stem), notebook)
    return Source(_clean_name(name), name)


def _moodle_source(found: re.Match[str]) -> Source:
    name, number = _clean_name(found["who"]), found["number"] or ""
    # In blind marking all have this name, perhaps after their group's ("Team A-Participant"). The grading
    # worksheet lists them by name and number.
    is_blind = _PARTICIPANT_WORDS_PATTERN.fullmatch(only_letters(name.rpartition("-")[2]))
    name = f"{name} {number}" if is_blind and number else name
    return Source(name, f"{name}/", "moodle" if number else "", number)


def _canvas_sources(stems: Sequence[str]) -> dict[str, Source]:
    """Return the sources of the names that Canvas made. Return {} if the numbers are not Canvas's.

    Canvas's numbers belong to one learner each, a learner has only one, and no two uploads share one. In
    `kay_2_...` and `zoe_2_...` the number counts something else, such as attempts.
    """
    found = {stem: match for stem in stems if (match := _canvas_name(stem))}
    pairs = {(match["who"], match.groupdict().get("number")) for match in found.values()}
    uploads = [match["upload"] for match in found.values() if match["upload"]]
    numbered = {(who, number) for who, number in pairs if number}
    if len(set(uploads)) < len(uploads) or any(
        len({pair[at] for pair in numbered}) < len(numbered) for at in (0, 1)
    ):
        return {}
    sources = {}
    for stem, match in found.items():
        number = match.groupdict().get("number") or ""
        name = f"{_clean_name(match['who'])} ({number})" if number else _clean_name(match["who"])
        sources[stem] = Source(name, name, "canvas" if number else "", number)
    return sources


def _canvas_name(stem: str) -> re.Match[str] | None:
    match = _ANONYMOUS_PATTERN.fullmatch(stem) or _CANVAS_PATTERN.fullmatch(stem)
    if match is None or not match["upload"]:
        return match
    # in `kay_2_10_dataparallel_vs_ddp` the second number is the notebook's
    written = [
        found.start() for name in notebooks() if (found := _notebook_pattern(name).search(stem))
    ]
    return match if all(match.start("rest") <= at for at in written) else None


def _without_copy(name: str) -> str:
    """Remove the marks of copies, unless nothing else would be left."""
    while True:
        shorter = _COPY_AFTER_PATTERN.sub("", _COPY_BEFORE_PATTERN.sub("", name))
        if shorter == name or not shorter.strip("_-. "):
            return name
        name = shorter


def _without_notebook(stem: str, notebook: str) -> str:
    """Remove a notebook's name, and the character that joins it, from a file's name.

    The notebook's number alone is removed only if the file contains that notebook: in anna_02, but not in
    student_02.
    """
    for name in find_notebook_names(stem):
        if found := _notebook_pattern(name).search(stem):
            before, after = stem[: found.start()], stem[found.end() :]
            before = before[:-1] if before.endswith(_JOINING_CHARS) else before
            after = after[1:] if after.startswith(_JOINING_CHARS) else after
            stem = "_".join(filter(None, map(_without_copy, (before, after)))) or stem
    if number := notebook[:2]:
        shorter = re.sub(rf"^{number}[-_. ]|[-_. ]{number}$", "", stem, count=1)
        stem = _without_copy(shorter) or stem
    return stem


def _notebook_pattern(notebook: str) -> re.Pattern[str]:
    names = ("[-_. ]".join(map(re.escape, name.split("_"))) for name in all_names_of(notebook))
    return re.compile(rf"(?<![0-9])(?:{'|'.join(names)})", re.IGNORECASE)


# --- names ------------------------------------------------------------------------------------------


def _clean_name(name: str) -> str:
    return unicodedata.normalize("NFC", " ".join(printable(name).split())) or "?"


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
    """Return a text for each source in which a reader can see how it differs from the others."""
    texts = list(map(_distinguishing_text, sources))
    looks = {unicodedata.normalize("NFKC", each).translate(_LOOKALIKES) for each in texts}
    return texts if len(looks) == len(texts) else list(map(ascii, texts))
