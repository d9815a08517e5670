"""torch.save of a dictionary with an object of the cell's class and an optimizer's state."""

import io

import torch


class Metrics:
    def __init__(self):
        self.losses = [1.0, 0.5]


def main(rank, world_size):
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    file = io.BytesIO()
    torch.save({"opt": optimizer.state_dict(), "m": Metrics()}, file)
    file.seek(0)
    got = torch.load(file, weights_only=False)
    return got["m"].losses, got["opt"]["param_groups"][0]["lr"]
