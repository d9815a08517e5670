"""main takes no arguments."""

FAILS = "TypeError"
DIFFERS = {
    "untraced": (
        "LaunchError",
        "launch looks at the parameters first, and says which ones main must have.",
    ),
    "launch": (
        "LaunchError",
        "launch looks at the parameters first, and says which ones main must have.",
    ),
}


def main():
    return 1
