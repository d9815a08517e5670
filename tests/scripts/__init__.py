"""Scripts as people write them, under torchrun and under `course run`, right and with bugs.

`python -m tests.scripts shapes` and `... bugs` run them both ways and write shapes.md and bugs.md.

    shapes   twenty scripts, and both ways to run one
    bugs     thirty bugs, each an edit of a script
"""
