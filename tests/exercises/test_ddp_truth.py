"""Assert that torch's DistributedDataParallel fulfills the expectations of notebook 09's checks."""

from __future__ import annotations

import pytest

from helpers.checks.execution import Execution
from helpers.checks.exercise import VISIBLE_SECRET
from helpers.checks.registry import get
from helpers.checks.right_values import draw
from helpers.ranks.launcher import launch
from tests.exercises.wrapped import wrapped

# Preload DDP, whose import takes a second, as a rank server in use has done
pytestmark = pytest.mark.usefixtures("preloaded")


@pytest.mark.extended
@pytest.mark.parametrize("name", ["HookedDDP", "BucketedDDP"])
def test_torch_ddp_passes_on_every_rank(name: str) -> None:
    for case in draw(get(name), VISIBLE_SECRET)[::4]:
        run = launch(wrapped, case.world_size, per_rank=[(mine,) for mine in case.given])
        assert not any(Execution(case, run).all_findings()), case
