"""The learner's complete vocabulary: the names for a notebook's first cell, and no others.

Importing this package is cheap and starts no processes, except in a Jupyter kernel. There, the rank server is
started in the background, because the reader will soon need it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from helpers.vocabulary import homes

if TYPE_CHECKING:
    from helpers import hosts as hosts
    from helpers.checks.check import check as check
    from helpers.checks.live_tensors import storage_bytes as storage_bytes
    from helpers.checks.live_tensors import tensors_held as tensors_held
    from helpers.course.hints import hint as hint
    from helpers.course.home import home as home
    from helpers.course.next_steps import next_steps as next_steps
    from helpers.course.quizzes import predict as predict
    from helpers.course.show_me import show_me as show_me
    from helpers.data.digits import digits as digits
    from helpers.data.gpu_trace import gpu_trace as gpu_trace
    from helpers.explorers.break_it import break_it as break_it
    from helpers.explorers.explore import explore as explore
    from helpers.imagined.imagine import imagine as imagine
    from helpers.jobs.mpiexec import mpiexec as mpiexec
    from helpers.jobs.ports import free_port as free_port
    from helpers.jobs.run import MpiFailed as MpiFailed
    from helpers.jobs.run import TorchrunFailed as TorchrunFailed
    from helpers.jobs.torchrun import start_torchrun as start_torchrun
    from helpers.jobs.torchrun import torchrun as torchrun
    from helpers.ranks.failures import Deadlock as Deadlock
    from helpers.ranks.failures import HostLost as HostLost
    from helpers.ranks.failures import LaunchError as LaunchError
    from helpers.ranks.failures import RankDied as RankDied
    from helpers.ranks.failures import RankFailed as RankFailed
    from helpers.ranks.failures import RankTimeout as RankTimeout
    from helpers.ranks.launcher import launch as launch
    from helpers.ranks.rank_context import span as span
    from helpers.ranks.run import RankFailure as RankFailure
    from helpers.ranks.run import Run as Run
    from helpers.room.learner import help_me as help_me
    from helpers.room.learner import join as join
    from helpers.scripts.run_script import run_script as run_script
    from helpers.views.before_after import before_after as before_after
    from helpers.views.curve import curves as curves
    from helpers.views.divergence import divergence as divergence
    from helpers.views.memory_bars import memory_bars as memory_bars
    from helpers.views.one_port import count_rounds as count_rounds
    from helpers.views.one_port import port_rounds as port_rounds
    from helpers.views.rank_grid import mesh_groups as mesh_groups
    from helpers.views.rank_grid import rank_grid as rank_grid
    from helpers.views.restarts import restart_timeline as restart_timeline
    from helpers.views.rounds import rounds as rounds
    from helpers.views.sample_raster import sample_raster as sample_raster
    from helpers.views.schedule import schedule as schedule
    from helpers.views.sharding import sharding as sharding
    from helpers.views.step_lanes import step_lanes as step_lanes
    from helpers.views.timeline import timeline as timeline
    from helpers.views.traffic import traffic as traffic
    from helpers.views.traffic_ledger import traffic_ledger as traffic_ledger
    from helpers.views.wait_graph import wait_graph as wait_graph


_HOME = homes()
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    """Load a name from its module on first use."""
    if name not in _HOME:
        raise AttributeError(f"module 'helpers' has no name {name!r}")
    _show_results()
    module = f"helpers.{name}" if _HOME[name] == __name__ else _HOME[name]  # this name is a package
    try:
        home = import_module(module)
    except ModuleNotFoundError as error:
        package = ".".join(module.split(".")[:2])
        if error.name != package:
            raise
        raise ImportError(f"this copy of the course has no {package}, and so no {name}") from error
    return home if _HOME[name] == __name__ else getattr(home, name)


def __dir__() -> list[str]:
    return __all__


def _show_results() -> None:
    """Register the displays of results, except on ranks, where this would only cost time."""
    from helpers.ranks.rank_context import inside_rank

    if not inside_rank():
        from helpers.views.show import register_displays

        register_displays()


if "IPython" in sys.modules:
    from helpers.course.greet import greet_kernel

    greet_kernel()
