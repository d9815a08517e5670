# %% the programme as it was | deadlocked
# A rank alone knows its own loss, and `broadcast` is a call for all ranks, with the same `src`: for the
# one that sends and for those that receive. Let all ranks learn all losses first; then every rank finds
# the same winner, and all make the same call, outside of every `if`.
def repair_mismatch(rank, world_size, loss, weight):
    lowest = loss.clone()
    dist.all_reduce(lowest, op=dist.ReduceOp.MIN)
    if loss == lowest:
        dist.broadcast(weight, src=rank)
    dist.all_reduce(loss)
    return weight, loss / world_size


# %% every rank broadcasts from itself | deadlocked
# A rank alone knows its own loss, and `broadcast` is a call for all ranks, with the same `src`: for the
# one that sends and for those that receive. Let all ranks learn all losses first; then every rank finds
# the same winner, and all make the same call, outside of every `if`.
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
# These are the weights of rank 0, whoever is best.
def repair_mismatch(rank, world_size, loss, weight):
    dist.broadcast(weight, src=0)
    dist.all_reduce(loss)
    return weight, loss / world_size


# %% the largest loss wins
# These are the weights of the rank with the largest loss; the smallest is best.
def repair_mismatch(rank, world_size, loss, weight):
    losses = [torch.empty_like(loss) for _ in range(world_size)]
    dist.all_gather(losses, loss)
    dist.broadcast(weight, src=losses.index(max(losses)))
    return weight, torch.cat(losses).mean()


# %% the sum for the mean
# The second part is the sum of the losses; their mean is wanted.
def repair_mismatch(rank, world_size, loss, weight):
    losses = [torch.empty_like(loss) for _ in range(world_size)]
    dist.all_gather(losses, loss)
    dist.broadcast(weight, src=losses.index(min(losses)))
    return weight, sum(losses)


# %% of equal losses the last
# Two ranks share the smallest loss here: the lowest of them is the winner.
def repair_mismatch(rank, world_size, loss, weight):
    losses = [torch.empty_like(loss) for _ in range(world_size)]
    dist.all_gather(losses, loss)
    winner = max(r for r in range(world_size) if losses[r] == min(losses))
    dist.broadcast(weight, src=winner)
    return weight, torch.cat(losses).mean()


# %% only the weights come back
# Return two things: the best rank's weights and the mean of all losses.
def repair_mismatch(rank, world_size, loss, weight):
    losses = [torch.empty_like(loss) for _ in range(world_size)]
    dist.all_gather(losses, loss)
    dist.broadcast(weight, src=losses.index(min(losses)))
    return weight


# %% zeros stand where losses of others will be
# Losses may be negative: a 0 in a place that no loss has filled must not take part.
def repair_mismatch(rank, world_size, loss, weight):
    table = torch.zeros(world_size, dtype=loss.dtype)
    table[rank] = loss
    dist.all_reduce(table, op=dist.ReduceOp.MAX)
    mean = loss.clone()
    dist.all_reduce(mean)
    dist.broadcast(weight, src=int(table.argmin()))
    return weight, mean / world_size


# %% only the winner calls broadcast, though all know it | deadlocked
# A rank alone knows its own loss, and `broadcast` is a call for all ranks, with the same `src`: for the
# one that sends and for those that receive. Let all ranks learn all losses first; then every rank finds
# the same winner, and all make the same call, outside of every `if`.
def repair_mismatch(rank, world_size, loss, weight):
    losses = [torch.empty_like(loss) for _ in range(world_size)]
    dist.all_gather(losses, loss)
    winner = losses.index(min(losses))
    if rank == winner:
        dist.broadcast(weight, src=winner)
    dist.all_reduce(loss)
    return weight, loss / world_size


# %% the minimum is written over the loss
# The second part is made from the smallest loss alone. Did an all_reduce with MIN write over `loss`? Let
# it have a clone.
def repair_mismatch(rank, world_size, loss, weight):
    losses = [torch.empty_like(loss) for _ in range(world_size)]
    dist.all_gather(losses, loss)
    winner = losses.index(min(losses))
    dist.all_reduce(loss, op=dist.ReduceOp.MIN)
    dist.broadcast(weight, src=winner)
    return weight, loss


# %% its own loss for the mean
# The second part is the rank's own loss; the mean of all losses is wanted.
def repair_mismatch(rank, world_size, loss, weight):
    losses = [torch.empty_like(loss) for _ in range(world_size)]
    dist.all_gather(losses, loss)
    dist.broadcast(weight, src=losses.index(min(losses)))
    return weight, loss.mean()


# %% sleeping in place of waiting
# This is what the check puts into a tensor of torch.empty, and into one that an irecv or an asynchronous
# call writes to until wait() has returned: NaN, or the largest whole number. Unless your own arithmetic
# made it (0/0, an overflow), it was read before wait(), or nothing was ever received into it.
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
# These losses differ by less than float32 can tell: whoever compares them keeps their dtype.
def repair_mismatch(rank, world_size, loss, weight):
    table = torch.zeros(world_size)
    table[rank] = loss
    dist.all_reduce(table)
    dist.broadcast(weight, src=int(table.argmin()))
    return weight, table.mean()
