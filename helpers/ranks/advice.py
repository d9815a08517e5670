"""Look up advice on errors whose messages do not tell a learner what to do.

Most rows are for errors in pasted tutorials, such as GPU code or a second init_process_group.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NO_GPU = (
    "There is no GPU for this rank. Compute on the CPU: leave out lines with torch.cuda, .cuda() and "
    'device_ids, and use "cpu" as the device instead of "cuda" or a rank number.'
)
_TWO_SIZES = (
    "The tensors in a list must all have the same shape as the tensor of this call. Pad the shorter ones to "
    "the longest, and remove the padding after the call."
)
_GLOO = 'Use the backend "gloo", which works on every machine; "nccl" needs a GPU for each rank.'


@dataclass(frozen=True)
class _KnownError:
    """A known error and its remedy.

    message_pattern: matches the error's message. kind: the exception's name; "" matches any name.
    line_pattern: matches the learner's line.
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
        "Ranks have no stdin. Call input() in the notebook and pass its result: "
        "launch(f, args=(text,)).",
        kind="EOFError",
    ),
    _KnownError(
        "Cannot access accelerator|pin memory|no NVIDIA driver",
        "There is no GPU here, and pin_memory only speeds up copies to a GPU. Leave it out.",
        line_pattern="pin_memory",
    ),
    _KnownError(
        "Invalid usage of tensors with different dtypes",
        "The tensors of one call have different dtypes. A tensor created by torch.empty, zeros or ones has "
        "torch's default dtype unless you pass dtype=.",
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
        r"AllreduceOptions, .*Invoked with: .*ProcessGroup object",
        "The second argument of all_reduce is the operation. Pass the group by name: "
        "dist.all_reduce(x, group=group).",
        kind="TypeError",
    ),
    _KnownError(
        r"AllreduceOptions, .*Invoked with:",
        "The second argument of all_reduce is the operation, such as dist.ReduceOp.SUM.",
        kind="TypeError",
    ),
    _KnownError(
        r"(Broadcast|Reduce)Options, .*Invoked with: .*ProcessGroup object",
        "The second argument is the root, a rank's number. Pass the group by name: "
        "dist.broadcast(x, src=0, group=group), dist.reduce(x, dst=0, group=group).",
        kind="TypeError",
    ),
    _KnownError(
        "Must specify global_rank or group_rank",
        "The call needs its root, a rank's number: for example dist.broadcast(x, src=0).",
    ),
    _KnownError(
        "not supported between instances of 'int' and '.*ProcessGroup'",
        "The second argument of send and recv is the other rank's number. Pass the group by name: "
        "dist.send(x, dst=1, group=group).",
        kind="TypeError",
    ),
    _KnownError(
        "Expected parameter `tensor_list`",
        "The list comes first: dist.all_gather(list_of_tensors, tensor).",
    ),
    _KnownError(
        "Expected parameter `(output_tensor_list|input_tensor_list)`",
        "Both arguments are lists with a tensor for each rank: dist.all_to_all(outputs, inputs). "
        "For single tensors, use dist.all_to_all_single(output, input).",
    ),
    _KnownError(
        "Expected parameter `output`",
        "The output comes first: dist.reduce_scatter(output, list_of_tensors).",
    ),
    _KnownError(
        r"Expected parameter `tensor` .*<class 'list'>",
        "The tensor comes first, then the list: dist.gather(tensor, gather_list), "
        "dist.scatter(tensor, scatter_list).",
        line_pattern=r"\b(gather|scatter)\(",
    ),
    _KnownError(
        r"Expected parameter `tensor` .*<class 'list'>",
        "Pass one tensor. For the tensors in a list, make one call for each, or first join them with "
        "torch.cat or torch.stack.",
    ),
    _KnownError(
        r"Expected parameter `tensor` .*<class 'int'>|Boolean value of Tensor",
        "The tensor comes first, then the other rank: dist.send(tensor, dst), dist.recv(tensor, src).",
        line_pattern=r"\b(i?send|i?recv)\(",
    ),
    _KnownError(
        r"Expected parameter `tensor` .*<class '(int|float|bool|numpy.*)'>",
        "These calls need a tensor, which they change in place: x = torch.tensor([value]), then pass x.",
    ),
    _KnownError(
        "allgather: invalid output tensor list|allgather: invalid tensor size|outputShape.* == inputShape",
        "The output comes first, and the sizes must match: dist.all_gather_into_tensor(output, input) "
        "needs an output world_size times as large as the input, and dist.reduce_scatter_tensor(output, "
        "input) needs an input world_size times as large as the output.",
        line_pattern=r"_tensor\(",
    ),
    _KnownError("invalid tensor size at index", _TWO_SIZES),
    _KnownError(
        "Incorrect (input|output) list size",
        "The list must have one tensor for each rank of the group, including this one.",
    ),
    _KnownError(
        "`(gather|scatter)_list`.*must NOT be specified",
        "Only the root passes the list; all other ranks pass None: for example "
        "dist.gather(x, gather_list if rank == dst else None, dst=dst).",
    ),
    _KnownError(
        "`(gather|scatter)_list`.*must be specified",
        "The root must pass the list, with one tensor for each rank of the group.",
    ),
    _KnownError(
        r"Global rank \d+ is not part of group",
        "src, dst and the peers of messages are ranks of the whole world, not positions within the group. "
        "For the member at a position of the group, write dist.get_global_rank(group, position), or pass "
        "group_src=, group_dst= instead.",
    ),
    _KnownError(
        "Size mismatch between saved .* and current",
        "The checkpoint's tensor has a different shape from the tensor into which it is loaded. "
        "The latter must have the full shape, either as a DTensor or unsharded. If it already does, "
        "build the model with the same sizes as when the checkpoint was saved.",
    ),
    _KnownError(
        "connection (was )?(closed|reset)|closed by peer|broken pipe",
        "The rank at the other end has disconnected: it has returned early, or called "
        "destroy_process_group(), while this rank still needs it. All ranks must make the same calls before "
        "one of them leaves. If one rank decides to leave, let all ranks know by calling "
        "all_reduce.",
    ),
    _KnownError(
        "Pair is not connected|(destination|source) rank should not be the same as the rank",
        "A rank cannot exchange messages with itself. Copy the tensor, as in received.copy_(sent). If the "
        "peer should be a different rank, compute it from the rank: (rank + 1) % world_size.",
    ),
)


def advice_for(kind: str, message: str, line: str = "") -> str:
    """Return advice on an error that torch or Python does not explain; "" if the table has no row for it.

    Args:
        kind: The exception's name.
        message: The exception's message.
        line: The learner's line that raised it, if known.
    """
    for known in _KNOWN_ERRORS:
        fits = known.kind in {"", kind} and re.search(
            known.message_pattern, message, re.IGNORECASE | re.DOTALL
        )
        if fits and re.search(known.line_pattern, line):
            return known.advice
    return ""
