"""Text for language models: the beginning of Shakespeare's Coriolanus, as speeches.

coriolanus.txt contains the first 40 KB of `data/tinyshakespeare/input.txt` in github.com/karpathy/char-rnn
(commit 6f9487a, 2016), up to the end of a speech. The play is in the public domain.
"""

from __future__ import annotations

from pathlib import Path

_FILE = Path(__file__).with_name("coriolanus.txt")


def play() -> list[str]:
    """Return the speeches, in ASCII, each beginning with the speaker's name."""
    return _FILE.read_text(encoding="ascii").strip().split("\n\n")
