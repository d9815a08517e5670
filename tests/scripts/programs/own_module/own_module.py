"""A script whose folder has modules of its own, one of them called `helpers`."""

import helpers
import torch
import torch.distributed as dist
from parts.model import make_model
from torch.nn.parallel import DistributedDataParallel as DDP


def main():
    dist.init_process_group("gloo")
    helpers.set_seed(4)
    model = DDP(make_model(width=4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        batch = helpers.batch(step, dist.get_rank())
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        helpers.print_on_rank_0(f"step {step}: {helpers.mean(loss):.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
