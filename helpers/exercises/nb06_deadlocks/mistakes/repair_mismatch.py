# %% the program as it was | deadlocked
# `broadcast` must be called by all ranks, with the same `src`, but a rank knows only its own loss. Let all
# ranks learn all losses first, so that every rank finds the same winner.
def repair_mismatch(rank, world_size, loss, weight):
    lowest = loss.clone()
    dist.all_reduce(lowest, op=dist.ReduceOp.MIN)
    if loss == lowest:
        dist.broadcast(weight, src=rank)
    dist.all_reduce(loss)
    return weight, loss / world_size


# %% every rank broadcasts from itself | deadlocked
# `broadcast` must be called by all ranks, with the same `src`, but a rank knows only its own loss. Let all
# ranks learn all losses first, so that every rank finds the same winner.
def repair_mismatch(rank, world_size, loss, weight):
    lowest = loss.clone()
    dist.all_reduce(lowest, op=dist.ReduceOp.MIN)
    dist.all_reduce(loss)
    if loss == lowest:
        dist.broadcast(weight, src=rank)
    else:
        dist.broadcast(weight.clone(), src=rank)
    return weight, loss / world_size


# %% always rank 0
# These are the weights of rank 0, whichever rank is best.
def repair_mismatch(rank, world_size, loss, weight):
    dist.broadcast(weight, src=0)
    dist.all_reduce(loss)
    return weight, loss / world_size


# %% the largest loss wins
# These are the weights of the rank with the largest loss. The smallest loss is the best.
def repair_mismatch(rank, world_size, loss, weight):
    losses = [torch.empty_like(loss) for _ in range(world_size)]
    dist.all_gather(losses, loss)
    dist.broadcast(weight, src=losses.index(max(losses)))
    return weight, torch.cat(losses).mean()


# %% the sum for the mean
# The second part is the sum of the losses. Return their mean.
def repair_mismatch(rank, world_size, loss, weight):
    losses = [torch.empty_like(loss) for _ in range(world_size)]
    dist.all_gather(losses, loss)
    dist.broadcast(weight, src=losses.index(min(losses)))
    return weight, sum(losses)


# %% of equal losses the last
# Several ranks share the smallest loss. The lowest of them is the winner.
def repair_mismatch(rank, world_size, loss, weight):
    losses = [torch.empty_like(loss) for _ in range(world_size)]
    dist.all_gather(losses, loss)
    winner = max(r for r in range(world_size) if losses[r] == min(losses))
    dist.broadcast(weight, src=winner)
    return weight, torch.cat(losses).mean()


# %% only the weights come back
# Only the weights come back. Return two things: the weights and the mean of all losses.
def repair_mismatch(rank, world_size, loss, weight):
    losses = [torch.empty_like(loss) for _ in range(world_size)]
    dist.all_gather(losses, loss)
    dist.broadcast(weight, src=losses.index(min(losses)))
    return weight


# %% zeros stand where losses of others will be
# Zeros in places that no loss has filled take part in the comparison, but losses may be negative.
def repair_mismatch(rank, world_size, loss, weight):
    table = torch.zeros(world_size, dtype=loss.dtype)
    table[rank] = loss
    dist.all_reduce(table, op=dist.ReduceOp.MAX)
    mean = loss.clone()
    dist.all_reduce(mean)
    dist.broadcast(weight, src=int(table.argmin()))
    return weight, mean / world_size


# %% only the winner calls broadcast, though all know it | deadlocked
# `broadcast` must be called by all ranks, with the same `src`, but a rank knows only its own loss. Let all
# ranks learn all losses first, so that every rank finds the same winner.
def repair_mismatch(rank, world_size, loss, weight):
    losses = [torch.empty_like(loss) for _ in range(world_size)]
    dist.all_gather(losses, loss)
    winner = losses.index(min(losses))
    if rank == winner:
        dist.broadcast(weight, src=winner)
    dist.all_reduce(loss)
    return weight, loss / world_size


# %% the minimum is written over the loss
# The second part is the smallest loss. If an `all_reduce` with MIN overwrote `loss`, pass a clone to it.
def repair_mismatch(rank, world_size, loss, weight):
    losses = [torch.empty_like(loss) for _ in range(world_size)]
    dist.all_gather(losses, loss)
    winner = losses.index(min(losses))
    dist.all_reduce(loss, op=dist.ReduceOp.MIN)
    dist.broadcast(weight, src=winner)
    return weight, loss


# %% its own loss for the mean
# The second part is this rank's own loss. Return the mean of all losses.
def repair_mismatch(rank, world_size, loss, weight):
    losses = [torch.empty_like(loss) for _ in range(world_size)]
    dist.all_gather(losses, loss)
    dist.broadcast(weight, src=losses.index(min(losses)))
    return weight, loss.mean()


# %% sleeping in place of waiting
# The weights were copied before `wait()` returned, so they hold no data yet. Wait first.
import time


def repair_mismatch(rank, world_size, loss, weight):
    losses = [torch.empty_like(loss) for _ in range(world_size)]
    dist.all_gather(losses, loss)
    work = dist.broadcast(weight, src=losses.index(min(losses)), async_op=True)
    time.sleep(0.2)
    best = weight.clone()
    work.wait()
    return best, torch.cat(losses).mean()


# %% the losses pass through float32
# The losses were compared in float32, but they differ by less than float32 can represent. Keep their dtype.
def repair_mismatch(rank, world_size, loss, weight):
    table = torch.zeros(world_size)
    table[rank] = loss
    dist.all_reduce(table)
    dist.broadcast(weight, src=int(table.argmin()))
    return weight, table.mean()


# %% nobody broadcasts
# Each rank returns its own weights. Broadcast those of the winner.
def repair_mismatch(rank, world_size, loss, weight):
    dist.all_reduce(loss)
    return weight, loss / world_size


# %% the weights pass through float32
# The weights were converted to float32 and lost digits. Broadcast `weight` as it is.
def repair_mismatch(rank, world_size, loss, weight):
    losses = [torch.empty_like(loss) for _ in range(world_size)]
    dist.all_gather(losses, loss)
    box = weight.float()
    dist.broadcast(box, src=losses.index(min(losses)))
    return box.to(weight.dtype), torch.cat(losses).mean()


# %% rank and loss packed into float32
# The losses were compared in float32, but they differ by less than float32 can represent. Keep their dtype.
def repair_mismatch(rank, world_size, loss, weight):
    pair = torch.tensor([loss.item(), float(rank)])
    pairs = [torch.empty(2) for _ in range(world_size)]
    dist.all_gather(pairs, pair)
    best = int(min(pairs, key=lambda p: (p[0].item(), p[1].item()))[1])
    dist.broadcast(weight, src=best)
    return weight, (sum(p[0] for p in pairs) / world_size).reshape(1).to(loss.dtype)
