# %% right: all losses are gathered, the winner found, the weights broadcast
def repair_mismatch(rank, world_size, loss, weight):
    losses = [torch.empty_like(loss) for _ in range(world_size)]
    dist.all_gather(losses, loss)
    winner = losses.index(min(losses))
    dist.broadcast(weight, src=winner)
    return weight, torch.stack(losses).mean()


# %% right: only reductions: the lowest loss, then the lowest rank that has it
def repair_mismatch(rank, world_size, loss, weight):
    lowest = loss.clone()
    dist.all_reduce(lowest, op=dist.ReduceOp.MIN)
    winner = torch.tensor([rank if loss == lowest else world_size])
    dist.all_reduce(winner, op=dist.ReduceOp.MIN)
    total = loss.clone()
    dist.all_reduce(total)
    dist.broadcast(weight, int(winner))
    return weight, (total / world_size).item()


# %% right: one slot for each rank, the result in a tensor of its own, as a list
def repair_mismatch(rank, world_size, loss, weight):
    table = loss.new_zeros(world_size)
    table[rank] = loss[0]
    dist.all_reduce(table)
    src = int(table.argmin())
    for other in range(world_size):
        if table[other] == table.min():
            src = other
            break
    box = weight.clone() if rank == src else torch.empty_like(weight)
    dist.broadcast(box, src=src)
    return [box, sum(table) / len(table)]


# %% wrong: all weights are gathered to take one | forbidden call | says: one broadcast carries them
def repair_mismatch(rank, world_size, loss, weight):
    losses = [torch.empty_like(loss) for _ in range(world_size)]
    dist.all_gather(losses, loss)
    weights = [torch.empty_like(weight) for _ in range(world_size)]
    dist.all_gather(weights, weight)
    return weights[losses.index(min(losses))], torch.cat(losses).mean()


# %% wrong: everybody's weights are broadcast in turn | wrong | says: once is right
def repair_mismatch(rank, world_size, loss, weight):
    losses, weights = [], []
    for src in range(world_size):
        box, w = loss.clone(), weight.clone()
        dist.broadcast(box, src=src)
        dist.broadcast(w, src=src)
        losses.append(box)
        weights.append(w)
    return weights[losses.index(min(losses))], torch.cat(losses).mean()


# %% right: a pair with the rank, in float64, through lists
def repair_mismatch(rank, world_size, loss, weight):
    pairs = [torch.zeros(2, dtype=torch.float64) for _ in range(world_size)]
    dist.all_gather(pairs, torch.tensor([loss.item(), rank], dtype=torch.float64))
    value, src = min(tuple(pair.tolist()) for pair in pairs)
    mine = weight.clone()
    dist.broadcast(mine, int(src))
    return mine, sum(p[0].item() for p in pairs) / world_size


# %% right: async, AVG by hand, a stable sort
def repair_mismatch(rank, world_size, loss, weight):
    everyone = loss.new_empty(world_size)
    dist.all_gather_into_tensor(everyone, loss)
    src = everyone.sort(stable=True).indices[0].item()
    work = dist.broadcast(weight, src=src, async_op=True)
    mean = everyone.double().mean()
    work.wait()
    return weight, mean


# %% wrong: weights travel one by one | forbidden call | says: one broadcast carries them
def repair_mismatch(rank, world_size, loss, weight):
    losses = [torch.empty_like(loss) for _ in range(world_size)]
    dist.all_gather(losses, loss)
    winner, flat = losses.index(min(losses)), weight.flatten()
    for i in range(len(flat)):
        parts = [flat[:1].clone() for _ in range(world_size)]
        dist.all_gather(parts, flat[i : i + 1])
        flat[i] = parts[winner]
    dist.broadcast(torch.zeros(1), src=winner)
    return flat.view_as(weight), torch.cat(losses).mean()
