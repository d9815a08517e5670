"""sys.exit with a text, which is printed."""

import sys

FAILS = "SystemExit"
DIFFERS = {
    "untraced": (
        "SystemExit",
        "the text is shown once, as the message of the error, and not printed as well",
    ),
    "launch": (
        "SystemExit",
        "the text is shown once, as the message of the error, and not printed as well",
    ),
    "ranks": (
        "SystemExit",
        "the text is shown once, as the message of the error, and not printed as well",
    ),
}


def main(rank, world_size):
    sys.exit("no data found")
