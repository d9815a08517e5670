"""A GAN with two optimizers; both networks are wrapped in DDP."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
generator = DDP(nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2)))
discriminator = DDP(nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(), nn.Linear(16, 1)))
generator_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-2)
discriminator_optimizer = torch.optim.Adam(discriminator.parameters(), lr=1e-2)
torch.manual_seed(100 + rank)
for step in range(5):
    real, noise = torch.randn(16, 2) + 3, torch.randn(16, 4)
    fake = generator(noise)
    scores = discriminator(torch.cat([real, fake.detach()]))
    labels = torch.cat([torch.ones(16, 1), torch.zeros(16, 1)])
    discriminator_loss = bce(scores, labels)
    discriminator_optimizer.zero_grad()
    discriminator_loss.backward()
    discriminator_optimizer.step()

    generator_loss = bce(discriminator(fake), torch.ones(16, 1))
    generator_optimizer.zero_grad()
    generator_loss.backward()
    generator_optimizer.step()
    losses = torch.stack([discriminator_loss.detach(), generator_loss.detach()])
    dist.reduce(losses, dst=0)
    if rank == 0:
        print(step, [round(value, 4) for value in losses.tolist()])
dist.destroy_process_group()
