# %% wrong: only its own samples | wrong | says: knows of its own right answers only


# %% wrong: rank 0 alone returns it | wrong | says: on every path


# %% right: an asynchronous call that is waited for
def exact_accuracy(rank, world_size, predicted, labels, length):
    places = torch.arange(rank, len(labels) * world_size, world_size)
    right = (predicted == labels)[places < length].sum()
    work = dist.all_reduce(right, async_op=True)
    work.wait()
    return float(right) / length


# %% wrong: every answer is sent, not counts | wrong | says: two numbers have 16 bytes
def exact_accuracy(rank, world_size, predicted, labels, length):
    hits = torch.zeros(length)
    mine = torch.arange(rank, length, world_size)
    hits[mine] = (predicted == labels)[: len(mine)].float()
    dist.all_reduce(hits)
    return hits.mean().item()


# %% wrong: it sleeps in place of waiting | wrong | says: is not
def exact_accuracy(rank, world_size, predicted, labels, length):
    import time

    real = torch.arange(len(labels)) * world_size + rank < length
    right = ((predicted == labels) & real).sum()
    work = dist.all_reduce(right, async_op=True)
    time.sleep(0.2)
    share = right.item() / length
    work.wait()
    return share


# %% wrong: it counts in bytes | wrong | says: is not
def exact_accuracy(rank, world_size, predicted, labels, length):
    real = torch.arange(len(labels)) * world_size + rank < length
    right = ((predicted == labels) & real).sum(dtype=torch.uint8)
    dist.all_reduce(right)
    return right.item() / length


# %% wrong: it counts in half precision | wrong | says: is not
def exact_accuracy(rank, world_size, predicted, labels, length):
    real = torch.arange(len(labels)) * world_size + rank < length
    right = ((predicted == labels) & real).sum().half()
    dist.all_reduce(right)
    return right.item() / length


# %% wrong: one sample too many | wrong | says: is not
def exact_accuracy(rank, world_size, predicted, labels, length):
    real = torch.arange(len(labels)) * world_size + rank <= length
    right = ((predicted == labels) & real).sum()
    dist.all_reduce(right)
    return right.item() / length
