"""A pipeline by hand: activations go forward, gradients come back, micro-batch by micro-batch."""

import torch
import torch.distributed as dist

MICRO_BATCHES, WIDTH = 4, 6

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)
stage = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh())
optimizer = torch.optim.SGD(stage.parameters(), lr=0.1)
is_first, is_last = rank == 0, rank == world_size - 1
generator = torch.Generator().manual_seed(9)
for step in range(3):
    batches = torch.randn(MICRO_BATCHES, 5, WIDTH, generator=generator)
    inputs, outputs, total = [], [], 0.0
    for batch in batches:
        received = batch.clone()
        if not is_first:
            dist.recv(received, src=rank - 1)
        received.requires_grad_()
        output = stage(received)
        inputs.append(received)
        outputs.append(output)
        if not is_last:
            dist.send(output.detach(), dst=rank + 1)
    for batch, received, output in zip(batches, inputs, outputs):
        if is_last:
            loss = (output - batch).square().mean() / MICRO_BATCHES
            total += loss.item()
            loss.backward()
        else:
            gradient = torch.empty(5, WIDTH)
            dist.recv(gradient, src=rank + 1)
            output.backward(gradient)
        if not is_first:
            dist.send(received.grad, dst=rank - 1)
    optimizer.step()
    optimizer.zero_grad()
    if is_last:
        print(f"step {step}: loss {total:.4f}")
print(f"stage {rank}: {sum(p.sum() for p in stage.parameters()).item():.4f}")
dist.destroy_process_group()
