# %% rank 0's empty letter is in the list
# The list begins with rank 0's own letter. It holds only the letters of ranks 1, 2, ...
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
# All letters share one buffer, so each one overwrites those before it. Make a tensor for each letter.
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
# The letters are longer than what was sent. Make each tensor as long as the message with tag 1 says.
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


# %% rank 0 keeps the letters to itself
# Rank 0 returns None. It returns the list of letters, and only the other ranks return None.
def tagged_mail(rank, world_size, letter):
    if rank:
        dist.send(torch.tensor([len(letter)]), 0, tag=1)
        dist.send(letter, 0, tag=2)
        return None
    for source in range(1, world_size):
        length = torch.zeros(1, dtype=torch.int64)
        dist.recv(length, source, tag=1)
        dist.recv(torch.empty(int(length)), source, tag=2)


# %% every letter in the same small buffer | crashed
# The buffer is too small for this letter. Make one for each letter, as long as the message with tag 1 says.
def tagged_mail(rank, world_size, letter):
    if rank:
        dist.send(torch.tensor([len(letter)]), 0, tag=1)
        dist.send(letter, 0, tag=2)
        return None
    letters, box = [], torch.zeros(8)
    for source in range(1, world_size):
        length = torch.zeros(1, dtype=torch.int64)
        dist.recv(length, source, tag=1)
        dist.recv(box[: int(length)], source, tag=2)
        letters.append(box[: int(length)])
    return letters
