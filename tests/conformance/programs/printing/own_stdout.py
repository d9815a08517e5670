"""sys.stdout is replaced by an object that marks each line, as loggers for ranks do."""

import sys


class Marked:
    def __init__(self, stream, mark):
        self.stream, self.mark = stream, mark

    def write(self, text):
        return self.stream.write(text.replace("\n", f" {self.mark}\n"))

    def flush(self):
        self.stream.flush()


def main(rank, world_size):
    old, sys.stdout = sys.stdout, Marked(sys.stdout, f"<{rank}>")
    print("hello")
    sys.stdout = old
    print("plain again")
