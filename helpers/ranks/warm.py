"""What a rank server imports before it forks ranks, so that no rank has to.

Called by `server`; in a sandbox by the process from which servers are forked; and by the course's kernel,
which forks its server from itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from helpers.ranks.options import has_gpu_driver

# What a grader's rank servers import, because each takes a fork's first user 0.1 to 1 s. A learner's server
# imports only what `wanted` has found in a program's text.
PRELOAD = (
    "numpy.random",
    "torch.nn.parallel",
    "torch.distributed._functional_collectives",
    "torch.distributed.tensor",
    "torch.distributed.optim",
    "torch.distributed.fsdp",
    "torch.distributed.tensor.parallel",
    "torch.distributed.pipelining",
    "torch.distributed.checkpoint",
    "torch.distributed.algorithms.join",
    "torch.distributed.algorithms.ddp_comm_hooks.default_hooks",
    "torch._dynamo",
    "torch.utils.data",
)


@dataclass
class _Importer:
    """Whether all is imported, and by this process itself; and whether torch is as ranks need it."""

    has_imported: bool = False
    is_here: bool = False
    is_server: bool = False


_importer = _Importer()
# Not told by process ids: in namespaces of their own, a sandbox's template and its servers are all process 1.
os.register_at_fork(after_in_child=lambda: setattr(_importer, "is_here", False))

_NEEDED = (
    "torch.distributed",
    "helpers.ranks.sending",
    "helpers.trace.kernels",
    "helpers.ranks.worker",
    "helpers.trace.recorder",
    "helpers.trace.log",
    "resource",  # else each rank would import it at its start,
    "torch.utils.serialization.config",  # and this one at its first storage
)

_HUGE = 2 << 20
_MADV_COLLAPSE = 25


def import_all(more: Sequence[str] = ()) -> None:
    """Import what every rank needs, and `more`, so that none has to later; set torch up for ranks."""
    if _importer.is_server:
        return  # the process that forked this one has
    if not _importer.has_imported:
        _import((*_NEEDED, *more))
    importlib.import_module("torch.distributed").set_debug_level_from_env()
    importlib.import_module("torch").set_num_threads(1)
    kernels = importlib.import_module("helpers.trace.kernels")
    kernels.install()
    if has_gpu_driver():
        kernels.install("cuda")  # gloo takes tensors on GPUs, too
    _importer.is_server = True
    _settle()


def import_to_share(more: Sequence[str]) -> None:
    """Import what every rank needs, and `more`, in a process that is not a rank server itself.

    Nothing that torch does is changed: a kernel goes on from here, with a server forked from it.
    """
    _import(_NEEDED)
    preload(more)


def _import(names: Sequence[str]) -> None:
    gc.disable()  # nothing that is imported becomes garbage: looking for some is a tenth of the time
    for name in names:
        importlib.import_module(name)
    _importer.has_imported = _importer.is_here = True


def _settle() -> None:
    gc.freeze()  # keeps the collector from touching, and so copying, pages shared by fork
    gc.enable()
    _into_huge_pages()


def preload(names: Sequence[str] = PRELOAD) -> None:
    """Import modules that ranks are likely to want."""
    gc.disable()  # as above
    for name in names:
        # what cannot be imported fails in the ranks, which report it: the server goes on
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    if (rules := sys.modules.get("torch._dynamo.trace_rules")) is not None:
        # init_process_group empties this cache; done here, no rank need copy the pages it is on
        rules.clear_lru_cache()
    _settle()


def _into_huge_pages() -> None:
    """Have the kernel gather this process's memory into pages of 2 MB, where it can (Linux 6.1 and later).

    Fork then copies some hundred entries of the page table in place of forty thousand, and a rank's end
    gives as few back. A rank that writes splits its own view of such a page and copies 4 kB, as before.
    """
    if not _importer.is_here:
        return  # all of it is shared with the process that forked this one: it would be copied whole
    if not (maps := Path("/proc/self/maps")).exists():
        return
    madvise = ctypes.CDLL(None).madvise
    for line in maps.read_text(encoding="utf-8").splitlines():
        span, rights, *_, inode = line.split()[:5]
        if rights == "rw-p" and inode == "0":
            first, end = (int(address, 16) for address in span.split("-"))
            first, end = -(-first // _HUGE) * _HUGE, end // _HUGE * _HUGE
            if first < end:
                madvise(ctypes.c_void_p(first), ctypes.c_size_t(end - first), _MADV_COLLAPSE)
