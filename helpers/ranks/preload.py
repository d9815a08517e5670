"""Import modules in a rank server before it forks ranks, so that no rank has to import them.

This module is called by `server`, by the process in a sandbox from which servers are forked, and by the
course's kernel, which forks its server.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from helpers.ranks.huge_pages import collapse_pages
from helpers.ranks.launch_options import has_gpu_driver
from helpers.ranks.own_modules import learner_module_names

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


# Functions of imported modules that prepare them for many ranks. They are called before the server forks.
before_forking: list[Callable[[], None]] = []


@dataclass
class _Importer:
    """State of preloading: whether modules are imported, and whether for a server."""

    has_imported: bool = False
    is_server: bool = False


_importer = _Importer()

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
    _importer.has_imported = True


def _freeze_memory() -> None:
    learner_module_names()  # so that ranks examine only what they import themselves
    for prepare in before_forking:
        prepare()
    gc.freeze()  # So the collector neither touches nor copies pages shared by fork.
    gc.enable()
    collapse_pages()


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
