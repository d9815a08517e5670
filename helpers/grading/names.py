"""Read learners' and notebooks' names in file names, and compare spellings of a learner's name.

`platforms` and `owners` read the names of files with these functions; `roster` compares names.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field

from helpers.checks.headings import all_names_of, notebooks

# Marks added by browsers, systems and JupyterLab to the name of a copy, in the most common languages.
_COPY = r"(?:copy|copie|copia|cópia|kopie|kopia|kopi|копия|副本|コピー|복사본)"
_COPY_BEFORE_PATTERN = re.compile(rf"^{_COPY}(?: \(\d+\))? (?:of|von|van|de|di|af|av|z|от) ", re.I)
_COPY_AFTER_PATTERN = re.compile(
    rf"(?:\s*\(\d+\)|\s*[-–—_ ]\s*{_COPY}\s?\d*|\s*\((?:\w+ )?{_COPY}(?: \d+)?\)|(?:的副本|のコピー)"
    # added in synchronized folders: Dropbox "(Ann's conflicted copy 2026-10-12)", Nextcloud, Syncthing
    r"|\s*\([^()]*(?:conflict|konflikt|conflit)[^()]*\)|[._](?:sync-)?conflict-\d{8}-\d{6}(?:-\w+)?"
    # added by nbgitpuller, which renames a learner's file before fetching a file with the same name
    r"|__\d{14})$",
    re.I,
)
# File extensions with which a notebook may arrive. `x.ipynb.zip` has two of them.
_ENDING_PATTERN = re.compile(
    r"\.(?:ipynb|txt|json|zip|gz|tar|tgz|bz2|xz|rar|7z|html?|pdf|py|md|docx?|odt|rtf|bak|download|webloc|url"
    r"|gdoc|colab)$",
    re.I,
)
# Characters that platforms remove from a name when writing it into a file's name, and the apostrophes that
# people type instead.
_REMOVED_PATTERN = re.compile(r"""['"‘’‚‛ʹʻʼʽ＇`´/\\:|&<>*?]""")


@dataclass(frozen=True)
class Source:
    """The owner of a file, as far as it is known from names.

    Args:
        name: The learner's name.
        spelling: The text from which the name was read; for a folder, it ends with a slash. Sources with
            different spellings are different people.
        platform, number: The platform, and the learner's number on it if the name contains one. The number
            may change with the assignment, so it does not distinguish sources.
        attempt: The time or number of the submission in a sortable form, if the name contains it.
        is_username: Whether the name is a username, which must be equal to the roster's except for case.
        is_feedback: Whether the file or folder contains feedback for the learner, who has not handed it in.
    """

    name: str
    spelling: str
    platform: str = ""
    number: str = field(default="", compare=False)
    attempt: str = field(default="", compare=False)
    is_username: bool = field(default=False, compare=False)
    is_feedback: bool = field(default=False, compare=False)


def printable(text: str) -> str:
    """Return at most 200 characters of `text`, without characters that control a terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)[:200]


def clean_name(name: str) -> str:
    """Return a name with composed letters and single spaces, or "?" if no letters are left."""
    return unicodedata.normalize("NFC", " ".join(printable(name).split())) or "?"


def only_letters(text: str) -> str:
    """Return a name's letters in lower case, because other characters vary between files and tables."""
    return "".join(re.findall(r"[^\W\d_]+", unicodedata.normalize("NFC", text).casefold()))


def name_words(name: str) -> tuple[str, ...]:
    """Return the words of a name in alphabetical order, in a form that is equal for all spellings.

    "Lee, Ann" and "Ann Lee" are equal, and so are "Sinead O'Brien" and "Sinead OBrien", "0012" and "12",
    and all kinds of hyphens.
    """
    words = _words(name)
    return tuple(sorted(word.lstrip("0") or "0" if word.isdigit() else word for word in words))


def compact_name(name: str) -> str:
    """Return a name's letters and digits in lower case, in their order."""
    return "".join(_words(name))


def _words(name: str) -> list[str]:
    text = _REMOVED_PATTERN.sub("", unicodedata.normalize("NFKC", name).casefold())
    return re.findall(r"[^\W_]+", text)


def is_feedback_name(name: str) -> bool:
    """Return whether the name of a folder in a learner's folder, or a part of a name, says "feedback"."""
    return "feedback" in name.casefold()


def stem_of(name: str) -> str:
    """Return a file's name without the extensions that a notebook may have on arrival."""
    while (shorter := _ENDING_PATTERN.sub("", name)) and shorter != name:
        name = shorter
    return name


def find_notebook_names(text: str) -> list[str]:
    """Return the course's notebooks mentioned in `text`, with any characters between the words."""
    return [name for name in notebooks() if notebook_pattern(name).search(text)]


def notebook_pattern(notebook: str) -> re.Pattern[str]:
    """Return a pattern that matches a notebook's names, including its former names."""
    names = ("[-_. ]".join(map(re.escape, name.split("_"))) for name in all_names_of(notebook))
    return re.compile(rf"(?<![0-9])(?:{'|'.join(names)})", re.IGNORECASE)


def without_copy(name: str) -> str:
    """Remove marks of a copy, such as " (1)", from a name, unless nothing else would be left."""
    while True:
        shorter = _COPY_AFTER_PATTERN.sub("", _COPY_BEFORE_PATTERN.sub("", name))
        if shorter == name or not shorter.strip("_-. "):
            return name
        name = shorter
