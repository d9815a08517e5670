"""An optimizer's state goes through state_dict and load_state_dict: training goes on alike."""

import copy

import torch


def step(model, optimizer, times):
    for i in range(times):
        optimizer.zero_grad()
        model(torch.full((1, 2), i + 1.0)).sum().backward()
        optimizer.step()


def main(rank, world_size):
    torch.manual_seed(rank)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    step(model, optimizer, 2)
    kept = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    step(model, optimizer, 2)
    after = model.weight.detach().clone()
    model.load_state_dict(kept[0])
    optimizer.load_state_dict(kept[1])
    step(model, optimizer, 2)
    return torch.equal(model.weight, after)
