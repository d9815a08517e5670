"""Read a profile recorded on a GPU, so that notebook 11 can show such a profile on any machine.

It was written by torch.profiler on rank 0 of two ranks (torch 2.11, NCCL 2.32): two steps of DDP on six
layers of 2048 x 2048, with a batch of 4096 and `bucket_cap_mb=20`. The two ranks shared one NVIDIA H200 and
took turns on it, so the file shows the streams of all kernels and their order, but not the speed of NCCL.
Only the arguments `stream`, `correlation` and `bytes` were kept, and times start at 0.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("ddp_on_a_gpu.json.gz")


def gpu_trace() -> dict[str, Any]:
    """Return the recorded profile in the form of a file from torch.profiler.

    An event's `pid` is "CPU" or "GPU". Its `tid` is the thread on the CPU or the stream on the GPU.
    """
    trace: dict[str, Any] = json.loads(gzip.decompress(_FILE.read_bytes()))
    return trace
