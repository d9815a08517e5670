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


# %% wrong: all over all ranks, as DDP does | wrong | says: These are sums over different experts
def expert_gradients(rank, world_size, ep, shared, experts):
    for p in [*shared, *experts]:
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)


# %% wrong: the mean over the copies | wrong | says: divide by the number of losses
def expert_gradients(rank, world_size, ep, shared, experts):
    copies = [dist.new_group(list(range(e, world_size, ep))) for e in range(ep)][rank % ep]
    for p in shared:
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
    for p in experts:
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG, group=copies)


# %% wrong: the ep group itself | wrong | says: hold different experts
def expert_gradients(rank, world_size, ep, shared, experts):
    groups = [dist.new_group(list(range(f, f + ep))) for f in range(0, world_size, ep)]
    for p in shared:
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
    for p in experts:
        dist.all_reduce(p.grad, group=groups[rank // ep])
        p.grad /= world_size


# %% wrong: experts are left alone | wrong | says: This is the rank's own gradient: those of all copies
def expert_gradients(rank, world_size, ep, shared, experts):
    for p in shared:
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)


# %% wrong: sums | wrong | says: This is a sum; the loss of the whole is the mean
def expert_gradients(rank, world_size, ep, shared, experts):
    copies = [dist.new_group(list(range(e, world_size, ep))) for e in range(ep)][rank % ep]
    for p in shared:
        dist.all_reduce(p.grad)
    for p in experts:
        dist.all_reduce(p.grad, group=copies)


# %% wrong: shared ones over the copies, too | wrong | says: they are averaged over all, not over one line
def expert_gradients(rank, world_size, ep, shared, experts):
    copies = [dist.new_group(list(range(e, world_size, ep))) for e in range(ep)][rank % ep]
    for p in shared:
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG, group=copies)
    for p in experts:
        dist.all_reduce(p.grad, group=copies)
        p.grad /= world_size


# %% wrong: only members make their group | crashed | says: All ranks make all groups, in the same order
def expert_gradients(rank, world_size, ep, shared, experts):
    copies = dist.new_group(list(range(rank % ep, world_size, ep)))
    for p in shared:
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
    for p in experts:
        dist.all_reduce(p.grad, group=copies)
        p.grad /= world_size


# %% wrong: averages the weights | wrong | says: the weights of shared 0 have changed
def expert_gradients(rank, world_size, ep, shared, experts):
    copies = [dist.new_group(list(range(e, world_size, ep))) for e in range(ep)][rank % ep]
    for p in shared:
        dist.all_reduce(p.data, op=dist.ReduceOp.AVG)
    for p in experts:
        dist.all_reduce(p.data, op=dist.ReduceOp.AVG, group=copies)


# %% wrong: everything travels twice | wrong | says: its gradients have [\d,]+, and travel once
def expert_gradients(rank, world_size, ep, shared, experts):
    copies = [dist.new_group(list(range(e, world_size, ep))) for e in range(ep)][rank % ep]
    for p in shared:
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
    for p in experts:
        dist.all_reduce(p.grad, group=copies)
        p.grad /= world_size
