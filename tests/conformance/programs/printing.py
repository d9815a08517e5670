# %% buffered_then_killed | Output flushed before a rank is killed is still shown.
import os
import signal

FAILS = "SIGKILL"


def main(rank, world_size):
    print("my last words", flush=True)
    if rank == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    import time

    time.sleep(20)


# %% input | input() gets no answer.
FAILS = "EOFError"


def main(rank, world_size):
    return input("your name? ")


# %% isatty | A rank's streams are not a terminal, according to isatty().
import sys


def main(rank, world_size):
    return sys.stdout.isatty(), sys.stdout.encoding.lower(), sys.stdout.writable()


# %% large | Twenty thousand lines, the last of which matters most.
DIFFERS = {
    "untraced": (
        [None, None],
        "of a long output the beginning and the end are kept, with a mark between them",
    ),
    "launch": (
        [None, None],
        "of a long output the beginning and the end are kept, with a mark between them",
    ),
    "ranks": (
        [None, None],
        "of a long output the beginning and the end are kept, with a mark between them",
    ),
}


def main(rank, world_size):
    for i in range(20_000):
        print(f"line {i:06} of rank {rank}")
    print("the last line")


# %% lines | Each rank prints lines; they stay whole and in order.
def main(rank, world_size):
    for i in range(5):
        print(f"rank {rank}, line {i}")
    print("a", "b", rank, sep="-", end=".\n")


# %% logging | The logging module, set up by basicConfig with the rank in each line.
import logging


def main(rank, world_size):
    logging.basicConfig(
        level=logging.INFO, format=f"[{rank}] %(levelname)s %(message)s", force=True
    )
    logging.info("step %d", 3)
    logging.getLogger("mine").warning("careful")
    logging.debug("not shown")


# %% logging_default | Logging without any setup: warnings go to stderr, infos nowhere.
import logging


def main(rank, world_size):
    logging.warning("seen on rank %d", rank)
    logging.info("not seen")
    return logging.getLogger().level, len(logging.getLogger("fresh").handlers)


# %% no_newline | The last line has no line end.
def main(rank, world_size):
    print("first")
    print("no end", end="")


# %% own_stdout | sys.stdout is replaced by an object that marks each line, like loggers for ranks.
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


# %% pretty | pprint and json.
import json
import pprint


def main(rank, world_size):
    pprint.pprint({"b": [1, 2], "a": {"x": None}})
    print(json.dumps({"rank": rank}, indent=2))


# %% rank_zero_only | A custom print disables the prints of all ranks except rank 0.
import builtins


def main(rank, world_size):
    def quiet(*words, **how):
        force = how.pop("force", False)
        if rank == 0 or force:
            builtins.print(*words, **how)

    print = quiet
    print("only rank 0 says this")
    print("forced", force=True)


# %% raw_descriptor | os.write on descriptor 1, and print, in order.
import os


def main(rank, world_size):
    print("by print", flush=True)
    os.write(1, b"by descriptor 1\n")
    os.write(2, b"by descriptor 2\n")


# %% redirected | redirect_stdout catches the output of print.
import contextlib
import io


def main(rank, world_size):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        print("caught", rank)
    print("not caught")
    return text.getvalue()


# %% stderr | Output on stderr is also shown.
import sys


def main(rank, world_size):
    print("to stdout", flush=True)
    print("to stderr", file=sys.stderr, flush=True)
    sys.stdout.write("written\n")


# %% tensors | Tensors and modules are printed as usual, with print options.
import torch


def main(rank, world_size):
    torch.set_printoptions(precision=2, sci_mode=False)
    print(torch.tensor([1.23456, 1000.0]))
    print(torch.nn.Linear(2, 3))
    print(torch.zeros(2, 0), torch.float16)


# %% tqdm_bar | A progress bar written into a StringIO.
import io

from tqdm import tqdm


def main(rank, world_size):
    text = io.StringIO()
    for _ in tqdm(range(10), file=text, bar_format="{n_fmt}/{total_fmt}", mininterval=0):
        pass
    return text.getvalue().replace("\r", "|")


# %% traceback | A caught error is printed with its traceback.
import traceback


def fail(n):
    return 1 / n


def main(rank, world_size):
    try:
        fail(0)
    except ZeroDivisionError:
        traceback.print_exc()
        return traceback.format_exc().strip().split("\n")[-1]


# %% traceback_lines | A traceback of the cell's function shows its source line.
import traceback


def fail(n):
    return 1 / n  # the line itself


def main(rank, world_size):
    try:
        fail(0)
    except ZeroDivisionError as error:
        frames = traceback.extract_tb(error.__traceback__)
        return [(frame.name, frame.line) for frame in frames]


# %% unicode | Letters of many scripts and a lone surrogate that is escaped.
def main(rank, world_size):
    print("żółw, 漢字, 🙂, \t|")
    print("\udcff".encode("utf-8", "backslashreplace").decode())
    return "é" * (rank + 1)


# %% warning | A custom warning is shown once for each line of code.
import warnings


def main(rank, world_size):
    for _ in range(3):
        warnings.warn("this is old", UserWarning, stacklevel=1)
    warnings.warn("this is another", RuntimeWarning, stacklevel=1)


# %% warning_as_error | Warnings made errors.
import warnings

FAILS = "DeprecationWarning"


def main(rank, world_size):
    warnings.simplefilter("error")
    warnings.warn("do not use this", DeprecationWarning, stacklevel=1)
