# %% right: init_device_mesh makes the groups
from torch.distributed.device_mesh import init_device_mesh


def expert_gradients(rank, world_size, ep, shared, experts):
    mesh = init_device_mesh("cpu", (world_size // ep, ep), mesh_dim_names=("dp", "ep"))
    for p in shared:
        dist.all_reduce(p.grad)
        p.grad.div_(world_size)
    for p in experts:
        p.grad /= ep
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG, group=mesh["dp"].get_group())


# %% right: one flat tensor for each kind
def expert_gradients(rank, world_size, ep, shared, experts):
    mine = None
    for first in range(ep):
        ranks = [r for r in range(world_size) if r % ep == first]
        group = dist.new_group(ranks)
        if rank in ranks:
            mine = group
    for params, group in ((shared, None), (experts, mine)):
        flat = torch.cat([p.grad.flatten() for p in params]) / world_size
        dist.all_reduce(flat, group=group)
        for p, part in zip(params, flat.split([p.numel() for p in params])):
            p.grad = part.view_as(p).clone()


# %% wrong: averages the weights | wrong | says: the weights of shared 0 have changed
def expert_gradients(rank, world_size, ep, shared, experts):
    copies = [dist.new_group(list(range(e, world_size, ep))) for e in range(ep)][rank % ep]
    for p in shared:
        dist.all_reduce(p.data, op=dist.ReduceOp.AVG)
    for p in experts:
        dist.all_reduce(p.data, op=dist.ReduceOp.AVG, group=copies)


# %% wrong: everything travels twice | wrong | says: each is sent once
def expert_gradients(rank, world_size, ep, shared, experts):
    copies = [dist.new_group(list(range(e, world_size, ep))) for e in range(ep)][rank % ep]
    for p in shared:
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
    for p in experts:
        dist.all_reduce(p.grad, group=copies)
        p.grad /= world_size
