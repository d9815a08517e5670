"""Reinforcement learning with roles: rank 0 learns, the others act and send what they have seen."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
ROUNDS, STEPS = 4, 8
torch.manual_seed(0)
policy = torch.nn.Linear(3, 2)


def act(generator):
    """Play one round: (observations, actions, rewards)."""
    observations = torch.randn(STEPS, 3, generator=generator)
    with torch.no_grad():
        actions = torch.multinomial(policy(observations).softmax(-1), 1, generator=generator)
    rewards = (actions[:, 0] == (observations[:, 0] > 0)).float()
    return torch.cat([observations, actions.float(), rewards[:, None]], dim=1)


def learn():
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.5)
    for number in range(ROUNDS):
        rollouts = []
        for actor in range(1, world_size):
            rollout = torch.empty(STEPS, 5)
            dist.recv(rollout, src=actor)
            rollouts.append(rollout)
        seen = torch.cat(rollouts)
        logs = policy(seen[:, :3]).log_softmax(-1)
        chosen = logs.gather(1, seen[:, 3:4].long())[:, 0]
        loss = -(chosen * (seen[:, 4] - seen[:, 4].mean())).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"round {number}: reward {seen[:, 4].mean():.3f}")
        for parameter in policy.parameters():
            dist.broadcast(parameter.data, src=0)


def play():
    generator = torch.Generator().manual_seed(rank)
    for _ in range(ROUNDS):
        dist.send(act(generator), dst=0)
        for parameter in policy.parameters():
            dist.broadcast(parameter.data, src=0)


if rank == 0:
    learn()
else:
    play()
dist.barrier()
print(f"rank {rank} has {policy.weight.sum():.4f}")
dist.destroy_process_group()
