"""redirect_stdout catches what print writes."""

import contextlib
import io


def main(rank, world_size):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        print("caught", rank)
    print("not caught")
    return text.getvalue()
