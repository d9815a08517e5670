"""Import modules in a rank server before it forks ranks, so that no rank has to import them.

This module is called by `server`, by the process in a sandbox from which servers are forked, and by the
course's kernel, which forks its server.
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

from helpers.ranks.launch_options import has_gpu_driver

# Modules imported by a grader's rank servers, because in a fork the first use of each module takes 0.1 to 1
# s. A learner's server imports only the modules that `preload_scan` has found in a program's text.
GRADER_MODULES = (
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
    """State of preloading: whether modules are imported, whether by this process, and for a server or not."""

    has_imported: bool = False
    has_imported_itself: bool = False
    is_server: bool = False


_importer = _Importer()
# Process ids cannot replace this flag, because a sandbox's template and its servers are all process 1 of
# separate namespaces.
os.register_at_fork(after_in_child=lambda: setattr(_importer, "has_imported_itself", False))

_NEEDED_MODULES = (
    "torch.distributed",
    "helpers.ranks.sending",
    "helpers.trace.kernels",
    "helpers.ranks.worker",
    "helpers.trace.recorder",
    "helpers.trace.log",
    "resource",  # Otherwise each rank imports it when starting.
    # Otherwise each rank imports the module when creating its first storage.
    "torch.utils.serialization.config",
)

_HUGE_PAGE_BYTES = 2 << 20
_MADV_COLLAPSE = 25


def import_all(modules: Sequence[str] = ()) -> None:
    """Import `modules` and the modules that every rank needs, and set torch up for ranks."""
    if _importer.is_server:
        return  # The parent process has imported them.
    if not _importer.has_imported:
        _import((*_NEEDED_MODULES, *modules))
    importlib.import_module("torch.distributed").set_debug_level_from_env()
    importlib.import_module("torch").set_num_threads(1)
    kernels = importlib.import_module("helpers.trace.kernels")
    kernels.install()
    if has_gpu_driver():
        kernels.install("cuda")  # gloo also accepts tensors on GPUs
    _importer.is_server = True
    _freeze_memory()


def import_for_sharing(modules: Sequence[str]) -> None:
    """Import `modules` and the modules that every rank needs, in a process that is not a rank server.

    Torch's behavior stays unchanged, because the kernel continues to use torch after forking its server.
    """
    _import(_NEEDED_MODULES)
    preload(modules)


def _import(modules: Sequence[str]) -> None:
    gc.disable()  # Imports create no garbage, and looking for garbage takes a tenth of their time.
    for name in modules:
        importlib.import_module(name)
    _importer.has_imported = _importer.has_imported_itself = True


def _freeze_memory() -> None:
    gc.freeze()  # So the collector neither touches nor copies pages shared by fork.
    gc.enable()
    _collapse_pages()


def preload(modules: Sequence[str] = GRADER_MODULES) -> None:
    """Import modules that ranks are likely to need."""
    gc.disable()  # as above
    for name in modules:
        # If a module cannot be imported, its import also fails in the ranks, which report the error. So the
        # server continues.
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    if (rules := sys.modules.get("torch._dynamo.trace_rules")) is not None:
        # init_process_group empties this cache. Emptying it here saves ranks from copying its pages.
        rules.clear_lru_cache()
    _freeze_memory()


def _collapse_pages() -> None:
    """Ask the kernel to collect this process's memory into pages of 2 MB (Linux 6.1 and later).

    Then a fork copies only a few hundred entries of the page table instead of forty thousand, and a rank's
    exit frees equally few. When a rank writes to a large page, its view of the page is split and 4 kB are
    copied, as before.
    """
    if not _importer.has_imported_itself:
        # The memory is shared with the parent process, so all of it would be copied.
        return
    if not (maps := Path("/proc/self/maps")).exists():
        return
    madvise = ctypes.CDLL(None).madvise
    for line in maps.read_text(encoding="utf-8").splitlines():
        span, rights, *_, inode = line.split()[:5]
        if rights == "rw-p" and inode == "0":
            first, end = (int(address, 16) for address in span.split("-"))
            first, end = (
                -(-first // _HUGE_PAGE_BYTES) * _HUGE_PAGE_BYTES,
                end // _HUGE_PAGE_BYTES * _HUGE_PAGE_BYTES,
            )
            if first < end:
                madvise(ctypes.c_void_p(first), ctypes.c_size_t(end - first), _MADV_COLLAPSE)
