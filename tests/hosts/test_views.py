"""Views of two levels of communication, within and between real hosts."""

from __future__ import annotations

import pytest
import torch

from helpers import launch, rank_grid, span, timeline, traffic_ledger
from helpers.answers.build import Answer
from helpers.answers.reader import read_answers
from helpers.course.workspace import find_workspace
from helpers.hosts.machines import Hosts

pytestmark = [pytest.mark.soak, pytest.mark.timeout(240)]


def test_views_distinguish_hsdp_traffic_between_hosts(machines: Hosts) -> None:
    def hsdp(rank: int, world_size: int) -> None:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
        layers = [torch.nn.Linear(64, 64) for _ in range(2)]
        for layer in layers:
            fully_shard(layer, mesh=mesh)
        model = fully_shard(torch.nn.Sequential(*layers), mesh=mesh)
        with span("forward"):
            loss = model(torch.ones(4, 64)).sum()
        with span("backward"):
            loss.backward()

    with machines:
        run = launch(hsdp, 4, timeout=60)
    # gathered and scattered in each host, for two layers; then each shard is reduced between hosts
    assert "between hosts: 4 of 16 collectives" in timeline(run).text
    forward, backward = traffic_ledger({"HSDP": run}).text.splitlines()[1].split(";")
    assert "between hosts" not in forward and "of it between hosts" in backward
    assert rank_grid(run).text.startswith("4 ranks in 2 x 2, a row for each host: host-0, host-1")


def test_only_second_reduction_level_uses_network(machines: Hosts) -> None:
    path = find_workspace().solutions / "05_collective_algorithms.ipynb"
    answer = read_answers(path, ["two_level_all_reduce"])["two_level_all_reduce"]
    assert isinstance(answer, Answer)
    names: dict[str, object] = {}
    exec(answer.source, names)  # the course's own source
    with machines:
        run = launch(names["two_level_all_reduce"], 4, args=(torch.ones(840), 2))  # type: ignore[arg-type]
    assert all((value == 4).all() for value in run.values)
    between = [c for c in run.trace.collectives() if run.trace.between_hosts(c.group_ranks)]
    assert [c.op for c in between] == ["all_reduce"] * 2
    assert "between hosts: 2 of 10 collectives" in timeline(run).text
