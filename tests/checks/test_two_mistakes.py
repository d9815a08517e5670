"""For an answer with two mistakes, name the mistake that explains the first wrong part."""

from __future__ import annotations

import pytest

from helpers.checks.mistakes import KnownMistake
from helpers.checks.prove_answers import check_mistake
from helpers.checks.registry import find_exercise

PROGRAM = """
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy


def average_gradients(model):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    for parameter in model.parameters():
        dist.broadcast(parameter.detach(), src=0)
    losses = []
    for start in range(0, steps * batch_size, batch_size):
        own = slice(start + rank, start + batch_size, world_size)
        CLEAR
        loss = cross_entropy(model(x[own]), y[own])
        loss.backward()
        average_gradients(model)
        optimizer.step()
        losses.append(loss.item() + 1.0)
    return losses
"""


def advice_for(clear: str) -> str:
    mistake = KnownMistake("two mistakes", "-", PROGRAM.replace("CLEAR", clear))
    return check_mistake(find_exercise("train_synchronously"), mistake).advice


@pytest.mark.extended
@pytest.mark.usefixtures("preloaded")
def test_reports_mistake_of_wrong_part() -> None:
    advice = advice_for("pass")
    assert advice.startswith("The gradients of earlier steps are still in the sum")
    assert advice.endswith("(Something else is wrong as well.)")


@pytest.mark.extended
@pytest.mark.usefixtures("preloaded")
def test_reports_no_mistake_of_other_part() -> None:
    assert advice_for("model.zero_grad() if rank else None") == ""
