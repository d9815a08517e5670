"""main takes no arguments."""

FAILS = "TypeError"


def main():
    return 1
