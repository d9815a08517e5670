"""Scripts as people write them, under torchrun and under `course run`, right and with bugs.

`python -m tests.scripts` runs all of them both ways and writes figures.md.

    shapes   twenty scripts, and both ways to run one
    bugs     thirty bugs, each an edit of a script
"""
