"""The learner's whole vocabulary: what a notebook's first cell imports, and nothing else.

Importing it is cheap and starts nothing, except in a Jupyter kernel, where the rank server begins
to start in the background because the reader will soon need it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from helpers.checks.check import check
    from helpers.checks.held import storage_bytes, tensors_held
    from helpers.course.hints import hint
    from helpers.course.home import home
    from helpers.course.next_steps import next_steps
    from helpers.course.quiz_view import predict
    from helpers.course.show_me import show_me
    from helpers.data.digits import digits
    from helpers.explorers.explore import explore
    from helpers.jobs.mpiexec import mpiexec
    from helpers.jobs.ports import free_port
    from helpers.jobs.run import MpiFailed, TorchrunFailed
    from helpers.jobs.torchrun import start_torchrun, torchrun
    from helpers.ranks.failures import (
        Deadlock,
        LaunchError,
        RankDied,
        RankFailed,
        RankTimeout,
    )
    from helpers.ranks.inside import span
    from helpers.ranks.launcher import launch
    from helpers.ranks.run import RankFailure, Run
    from helpers.views.before_after import before_after
    from helpers.views.curve import curves
    from helpers.views.digit_rows import digit_rows
    from helpers.views.divergence import divergence
    from helpers.views.expert_load import expert_load
    from helpers.views.memory_bars import memory_bars
    from helpers.views.mesh_groups import mesh_groups
    from helpers.views.one_port import count_rounds
    from helpers.views.plan_bars import plan_bars
    from helpers.views.plan_check import published_runs
    from helpers.views.process_tree import process_tree
    from helpers.views.rank_grid import rank_grid
    from helpers.views.rendezvous import rendezvous
    from helpers.views.restarts import restart_timeline
    from helpers.views.rounds import rounds
    from helpers.views.sample_raster import sample_raster
    from helpers.views.schedule import schedule
    from helpers.views.sharding import sharding
    from helpers.views.startup_bars import startup_bars
    from helpers.views.step_lanes import step_lanes
    from helpers.views.timeline import timeline
    from helpers.views.traffic import traffic
    from helpers.views.traffic_grid import traffic_grid
    from helpers.views.traffic_ledger import traffic_ledger
    from helpers.views.wait_graph import wait_graph
    from helpers.views.work_lanes import work_lanes

_HOME = {
    "check": "helpers.checks.check",
    "digits": "helpers.data.digits",
    "explore": "helpers.explorers.explore",
    "hint": "helpers.course.hints",
    "home": "helpers.course.home",
    "show_me": "helpers.course.show_me",
    "storage_bytes": "helpers.checks.held",
    "tensors_held": "helpers.checks.held",
    "predict": "helpers.course.quiz_view",
    "launch": "helpers.ranks.launcher",
    "next_steps": "helpers.course.next_steps",
    "span": "helpers.ranks.inside",
    "free_port": "helpers.jobs.ports",
    "Run": "helpers.ranks.run",
    "MpiFailed": "helpers.jobs.run",
    "mpiexec": "helpers.jobs.mpiexec",
    "TorchrunFailed": "helpers.jobs.run",
    "start_torchrun": "helpers.jobs.torchrun",
    "torchrun": "helpers.jobs.torchrun",
    "count_rounds": "helpers.views.one_port",
    "before_after": "helpers.views.before_after",
    "curves": "helpers.views.curve",
    "digit_rows": "helpers.views.digit_rows",
    "divergence": "helpers.views.divergence",
    "expert_load": "helpers.views.expert_load",
    "memory_bars": "helpers.views.memory_bars",
    "mesh_groups": "helpers.views.mesh_groups",
    "plan_bars": "helpers.views.plan_bars",
    "published_runs": "helpers.views.plan_check",
    "process_tree": "helpers.views.process_tree",
    "rank_grid": "helpers.views.rank_grid",
    "rendezvous": "helpers.views.rendezvous",
    "restart_timeline": "helpers.views.restarts",
    "rounds": "helpers.views.rounds",
    "sample_raster": "helpers.views.sample_raster",
    "schedule": "helpers.views.schedule",
    "sharding": "helpers.views.sharding",
    "startup_bars": "helpers.views.startup_bars",
    "step_lanes": "helpers.views.step_lanes",
    "timeline": "helpers.views.timeline",
    "traffic": "helpers.views.traffic",
    "traffic_grid": "helpers.views.traffic_grid",
    "traffic_ledger": "helpers.views.traffic_ledger",
    "wait_graph": "helpers.views.wait_graph",
    "work_lanes": "helpers.views.work_lanes",
    "Deadlock": "helpers.ranks.failures",
    "LaunchError": "helpers.ranks.failures",
    "RankDied": "helpers.ranks.failures",
    "RankFailed": "helpers.ranks.failures",
    "RankFailure": "helpers.ranks.run",
    "RankTimeout": "helpers.ranks.failures",
}

__all__ = [
    "Deadlock",
    "LaunchError",
    "MpiFailed",
    "RankDied",
    "RankFailed",
    "RankFailure",
    "RankTimeout",
    "Run",
    "TorchrunFailed",
    "before_after",
    "check",
    "count_rounds",
    "curves",
    "digit_rows",
    "digits",
    "divergence",
    "expert_load",
    "explore",
    "free_port",
    "hint",
    "home",
    "launch",
    "memory_bars",
    "mesh_groups",
    "mpiexec",
    "next_steps",
    "plan_bars",
    "predict",
    "process_tree",
    "published_runs",
    "rank_grid",
    "rendezvous",
    "restart_timeline",
    "rounds",
    "sample_raster",
    "schedule",
    "sharding",
    "show_me",
    "span",
    "start_torchrun",
    "startup_bars",
    "storage_bytes",
    "step_lanes",
    "tensors_held",
    "timeline",
    "torchrun",
    "traffic",
    "traffic_grid",
    "traffic_ledger",
    "wait_graph",
    "work_lanes",
]


def __getattr__(name: str) -> Any:
    """Load a name from its module when it is first asked for."""
    if name not in _HOME:
        raise AttributeError(f"module 'helpers' has no name {name!r}")
    _show_results()
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)


def _show_results() -> None:
    """Have results show themselves, but on ranks: nobody sees one there, and each would wait for it."""
    from helpers.ranks.inside import inside_rank

    if not inside_rank():
        from helpers.views.show import tie

        tie()


def _greet_kernel() -> None:
    """Make a kernel, or an IPython in a terminal, ready for `launch` and `%%ranks`."""
    from helpers.ranks.cells import in_kernel, ipython

    if in_kernel():
        from helpers.ranks.launcher import start_in_background

        start_in_background()
    shell = ipython()
    if shell is not None:
        from helpers.course import after
        from helpers.ranks import magics

        magics.register(shell)
        after.register(shell)
        _show_results()


if "IPython" in sys.modules:
    _greet_kernel()
