# %% all over all ranks, as DDP does
# These are sums over different experts: only ranks with the same rank % ep hold the same one. Make a
# group of those.
def expert_gradients(rank, world_size, ep, shared, experts):
    for p in [*shared, *experts]:
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)


# %% the mean over the copies
# These gradients are ep = {ep} times too large: divide by the number of losses, which is the world size,
# not by the number of copies.
def expert_gradients(rank, world_size, ep, shared, experts):
    copies = [dist.new_group(list(range(e, world_size, ep))) for e in range(ep)][rank % ep]
    for p in shared:
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
    for p in experts:
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG, group=copies)


# %% the ep group itself
# These are sums over {neighbours} ranks in a row, which hold different experts. The same expert stands on
# every ep-th rank.
def expert_gradients(rank, world_size, ep, shared, experts):
    groups = [dist.new_group(list(range(f, f + ep))) for f in range(0, world_size, ep)]
    for p in shared:
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
    for p in experts:
        dist.all_reduce(p.grad, group=groups[rank // ep])
        p.grad /= world_size


# %% experts are left alone
# This is the rank's own gradient: those of all copies of the expert are added up, and divided by the
# number of losses.
def expert_gradients(rank, world_size, ep, shared, experts):
    for p in shared:
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)


# %% sums
# This is a sum; the loss of the whole is the mean of the ranks' losses: divide by the world size.
def expert_gradients(rank, world_size, ep, shared, experts):
    copies = [dist.new_group(list(range(e, world_size, ep))) for e in range(ep)][rank % ep]
    for p in shared:
        dist.all_reduce(p.grad)
    for p in experts:
        dist.all_reduce(p.grad, group=copies)


# %% shared ones over the copies, too
# Shared parameters stand on all ranks: they are averaged over all, not over one line of the grid.
def expert_gradients(rank, world_size, ep, shared, experts):
    copies = [dist.new_group(list(range(e, world_size, ep))) for e in range(ep)][rank % ep]
    for p in shared:
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG, group=copies)
    for p in experts:
        dist.all_reduce(p.grad, group=copies)
        p.grad /= world_size


# %% only members make their group | crashed
# All ranks make all groups, in the same order, also those that they are not in.
def expert_gradients(rank, world_size, ep, shared, experts):
    copies = dist.new_group(list(range(rank % ep, world_size, ep)))
    for p in shared:
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
    for p in experts:
        dist.all_reduce(p.grad, group=copies)
        p.grad /= world_size
