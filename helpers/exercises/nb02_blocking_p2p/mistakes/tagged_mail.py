# %% in the order of arrival, not of rank
# These are the right parts, in another order.
def tagged_mail(rank, world_size, letter):
    if rank != 0:
        import time

        time.sleep(0.02 * (world_size - rank))
        dist.send(torch.tensor([len(letter)]), 0, tag=1)
        dist.send(letter, 0, tag=2)
        return None
    letters = []
    for _ in range(1, world_size):
        length = torch.zeros(1, dtype=torch.int64)
        source = dist.recv(length, tag=1)
        box = torch.empty(int(length))
        dist.recv(box, source, tag=2)
        letters.append(box)
    return letters


# %% a large buffer in place of the length
# After the letters come elements that nobody sent: make each tensor as long as the message with tag 1
# says.
def tagged_mail(rank, world_size, letter):
    if rank:
        dist.send(torch.tensor([len(letter)]), 0, tag=1)
        dist.send(letter, 0, tag=2)
        return None
    letters = []
    for source in range(1, world_size):
        length = torch.zeros(1, dtype=torch.int64)
        dist.recv(length, source, tag=1)
        box = torch.zeros(100)
        dist.recv(box, source, tag=2)
        letters.append(box)
    return letters


# %% rank 0's empty letter is in the list
# Rank 0's own, empty letter does not belong into the list.
def tagged_mail(rank, world_size, letter):
    if rank:
        dist.send(torch.tensor([len(letter)]), 0, tag=1)
        dist.send(letter, 0, tag=2)
        return None
    letters = [letter]
    for source in range(1, world_size):
        length = torch.zeros(1, dtype=torch.int64)
        dist.recv(length, source, tag=1)
        box = torch.empty(int(length))
        dist.recv(box, source, tag=2)
        letters.append(box)
    return letters


# %% all letters in one long enough tensor
# All letters lie in one tensor, each written over the one before: make one for each.
def tagged_mail(rank, world_size, letter):
    if rank:
        dist.send(torch.tensor([len(letter)]), 0, tag=1)
        dist.send(letter, 0, tag=2)
        return None
    letters = []
    box = torch.zeros(1000)
    for source in range(1, world_size):
        length = torch.zeros(1, dtype=torch.int64)
        dist.recv(length, source, tag=1)
        dist.recv(box[: int(length)], source, tag=2)
        letters.append(box[: int(length)])
    return letters


# %% long enough for all, never cut
# After the letters come elements that nobody sent: make each tensor as long as the message with tag 1
# says.
def tagged_mail(rank, world_size, letter):
    if rank:
        dist.send(torch.tensor([len(letter)]), 0, tag=1)
        dist.send(letter, 0, tag=2)
        return None
    letters = []
    for source in range(1, world_size):
        length = torch.zeros(1, dtype=torch.int64)
        dist.recv(length, source, tag=1)
        box = torch.zeros(1000)
        dist.recv(box, source, tag=2)
        letters.append(box)
    return letters
