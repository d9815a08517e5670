# %% all over all ranks, as DDP does
# The experts' gradients are summed over all ranks, which hold different experts. Only ranks with the same
# rank % ep hold the same one: make a group of those.
def expert_gradients(rank, world_size, ep, shared, experts):
    for p in [*shared, *experts]:
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)


# %% the mean over the copies
# The experts' gradients are {ep} times too large: divide by the number of losses, which is the world size,
# not by the number of copies.
def expert_gradients(rank, world_size, ep, shared, experts):
    copies = [dist.new_group(list(range(e, world_size, ep))) for e in range(ep)][rank % ep]
    for p in shared:
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
    for p in experts:
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG, group=copies)


# %% the ep group itself
# The experts' gradients are summed over {neighbors} consecutive ranks, which hold different experts. The
# same expert is on every ep-th rank.
def expert_gradients(rank, world_size, ep, shared, experts):
    groups = [dist.new_group(list(range(f, f + ep))) for f in range(0, world_size, ep)]
    for p in shared:
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
    for p in experts:
        dist.all_reduce(p.grad, group=groups[rank // ep])
        p.grad /= world_size


# %% experts are left alone
# This is the rank's own gradient. Sum those of all copies of the expert, then divide by the number of
# losses, which is the world size.
def expert_gradients(rank, world_size, ep, shared, experts):
    for p in shared:
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)


# %% sums
# This is a sum. The whole loss is the mean of the ranks' losses: divide by the world size.
def expert_gradients(rank, world_size, ep, shared, experts):
    copies = [dist.new_group(list(range(e, world_size, ep))) for e in range(ep)][rank % ep]
    for p in shared:
        dist.all_reduce(p.grad)
    for p in experts:
        dist.all_reduce(p.grad, group=copies)


# %% shared ones over the copies, too
# The shared parameters' gradients are averaged over some ranks only. All ranks hold them: average over all.
def expert_gradients(rank, world_size, ep, shared, experts):
    copies = [dist.new_group(list(range(e, world_size, ep))) for e in range(ep)][rank % ep]
    for p in shared:
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG, group=copies)
    for p in experts:
        dist.all_reduce(p.grad, group=copies)
        p.grad /= world_size


# %% only members make their group | crashed
# Only the members of a group create it. All ranks must call new_group for all groups, in the same order.
def expert_gradients(rank, world_size, ep, shared, experts):
    copies = dist.new_group(list(range(rank % ep, world_size, ep)))
    for p in shared:
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
    for p in experts:
        dist.all_reduce(p.grad, group=copies)
        p.grad /= world_size
