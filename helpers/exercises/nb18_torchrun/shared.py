"""Stacks of jobs that hang, recorded under torchrun by `tests.exercises.record_stacks`, for 18.4."""

from __future__ import annotations

STACK_FILES = {
    "T": "train.py",
    "C": "torch/distributed/distributed_c10d.py",
    "L": "torch/distributed/c10d_logger.py",
    "R": "threading.py",
    "Q": "queue.py",
}
READER_STACK = (
    "R327:wait Q140:put T19:read_batches R982:run R1045:_bootstrap_inner R1002:_bootstrap"
)
"""A worker's second thread, which reads batches ahead and waits while its queue is full."""
AVERAGE_STACK = "C3252:all_reduce L83:wrapper T34:average T67:train T84:main T89:<module>"
STACKS = {
    "no batch": ("T23:wait_for_disk T28:next_batch T56:train T84:main T89:<module>", AVERAGE_STACK),
    "no batch, and a chain": (
        "T23:wait_for_disk T28:next_batch T60:train T84:main T89:<module>",
        AVERAGE_STACK,
        "C2799:recv L83:wrapper T45:pass_on T61:train T84:main T89:<module>",
    ),
    "a recv": ("C2799:recv L83:wrapper T63:train T84:main T89:<module>", AVERAGE_STACK),
    "another caller": (
        "C3252:all_reduce L83:wrapper T34:average T51:evaluate T65:train T84:main T89:<module>",
        AVERAGE_STACK,
    ),
    "another call of the same function": (
        "C3252:all_reduce L83:wrapper T34:average T65:train T84:main T89:<module>",
        AVERAGE_STACK,
    ),
    "another line": (
        "C3252:all_reduce L83:wrapper T39:clip T69:train T84:main T89:<module>",
        AVERAGE_STACK,
    ),
    "a barrier": ("C5356:barrier L83:wrapper T70:train T84:main T89:<module>", AVERAGE_STACK),
    "no object": (
        AVERAGE_STACK,
        "C3151:broadcast L83:wrapper C4026:broadcast_object_list L83:wrapper T58:train T84:main T89:<module>",
    ),
    "no rendezvous": (
        "T23:wait_for_disk T77:main T89:<module>",
        "C2169:_new_process_group_helper C1899:init_process_group L97:wrapper L83:wrapper T78:main "
        "T89:<module>",
    ),
    "no barrier": (
        "T23:wait_for_disk T82:main T89:<module>",
        "C5356:barrier L83:wrapper T83:main T89:<module>",
    ),
}
"""Main threads in each kind of hang: of the rank to blame, waiting ranks, and a rank in other code."""


def format_stack(frames: str, thread: str) -> str:
    """Write a thread's frames like `faulthandler`."""
    lines = [f"{thread} (most recent call first):"]
    for frame in frames.split():
        line, _, name = frame[1:].partition(":")
        lines.append(f'  File "{STACK_FILES[frame[0]]}", line {line} in {name}')
    return "\n".join(lines) + "\n"
