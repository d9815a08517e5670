"""Return advice on errors whose own message does not tell a learner what to do, from one table.

Most rows are for errors in pasted tutorials, such as GPU code or a second init_process_group.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NO_GPU = (
    "There is no GPU for this rank. Compute on the CPU: leave out lines with torch.cuda, .cuda() and "
    'device_ids, and use "cpu" as the device instead of "cuda" or a rank number.'
)
_GLOO = 'Use the backend "gloo", which works on every machine; "nccl" needs a GPU for each rank.'


@dataclass(frozen=True)
class _KnownError:
    """An error, and what to do about it.

    message_pattern: for its message. kind: the exception's name; "" matches any. line_pattern: for the
    learner's line.
    """

    message_pattern: str
    advice: str
    kind: str = ""
    line_pattern: str = ""


# The first matching row is used.
_KNOWN_ERRORS = (
    _KnownError(
        "initialize the default process group twice",
        "launch() and %%ranks initialize the process group before your code runs, so leave out "
        "init_process_group(...). To call it yourself, as a script does, write launch(..., "
        "init=False).",
    ),
    _KnownError(
        "Default process group has not been initialized",
        "The process group is not initialized here. With launch(..., init=False), or after "
        "destroy_process_group(), call dist.init_process_group('gloo') first.",
    ),
    _KnownError(
        "EADDRINUSE|address already in use",
        "This port is already in use. Every launch reserves a free port in os.environ['MASTER_PORT'], "
        "and dist.init_process_group('gloo') reads it. For a different free port, call "
        "helpers.free_port().",
    ),
    _KnownError(
        "",
        "Ranks have no stdin, so a debugger cannot prompt. Print what you want to see on the rank, or "
        "return it and look at launch(...).values[rank] in the notebook.",
        kind="BdbQuit",
    ),
    _KnownError(
        "EOF when reading a line",
        "Ranks have no stdin. Call input() in the notebook and pass what it returns: "
        "launch(f, args=(text,)).",
        kind="EOFError",
    ),
    _KnownError(
        "Cannot access accelerator|pin memory|no NVIDIA driver",
        "There is no GPU here, and pin_memory only speeds up copies to a GPU. Leave it out.",
        line_pattern="pin_memory",
    ),
    _KnownError(
        "device_ids and output_device", "A model on the CPU has no device_ids. Write DDP(model)."
    ),
    _KnownError(
        "No activities specified for the profiler",
        "There is no GPU here to profile. Write activities=[ProfilerActivity.CPU].",
    ),
    _KnownError(
        "modulo by zero|division by zero",
        "There is no GPU here, so torch.cuda.device_count() is 0. Compute on the CPU: "
        'use "cpu" as the device.',
        kind="ZeroDivisionError",
        line_pattern="device_count",
    ),
    _KnownError(
        "doesn't have (NCCL|MPI|UCC|XCCL|Gloo) built in|only supported with GPUs"
        r"|requires at least one CUDA device|device_id \w+:\d+ is out of range",
        _GLOO,
    ),
    _KnownError(r"Unknown (c10d )?backend type|device_id \S+ does not match", _GLOO),
    _KnownError(
        r"_cuda_\w+'|_nccl_\w+'|not compiled with (CUDA|XPU)|without CUDA support|requires CUDA support"
        r"|Cannot access accelerator|dummy base class|CUDA generator|NVTX functions|support for mps"
        r"|no NVIDIA driver|No CUDA GPUs|no CUDA-capable device|CUDA (driver )?initialization"
        r"|CUDA driver version is insufficient|argument to reset_peak_memory_stats"
        r"|invalid device ordinal|allocated_bytes",
        _NO_GPU,
    ),
    _KnownError(
        "Unable to find (address|interface) for",
        "This machine has no network interface with the name in GLOO_SOCKET_IFNAME. Leave that line "
        "out: ranks on one machine find each other without it.",
    ),
    _KnownError(
        "connection (was )?(closed|reset)|closed by peer|broken pipe",
        "The rank at the other end has disconnected, for example because it called "
        "destroy_process_group(). No rank may disconnect before all ranks have made their last call: "
        "call dist.barrier() first.",
    ),
    _KnownError(
        "Pair is not connected|(destination|source) rank should not be the same as the rank",
        "gloo cannot send from a rank to itself. Copy the tensor, as in received.copy_(sent). If the "
        "peer should be a different rank, compute it from the rank: (rank + 1) % world_size.",
    ),
)


def advice_for(kind: str, message: str, line: str = "") -> str:
    """Return what to do about an error that torch or Python does not explain; "" if the table has no row.

    Args:
        kind: The name of the exception.
        message: Its message.
        line: The learner's line that raised it, if known.
    """
    for known in _KNOWN_ERRORS:
        fits = known.kind in {"", kind} and re.search(known.message_pattern, message, re.IGNORECASE)
        if fits and re.search(known.line_pattern, line):
            return known.advice
    return ""
