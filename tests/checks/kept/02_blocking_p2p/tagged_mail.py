# %% wrong: in the order of arrival, not of rank | wrong | says: right parts, in another order


# %% wrong: a large buffer in place of the length | wrong | says: elements that nobody sent


# %% wrong: every letter in the same buffer | crashed | says: must be at least as large as the message


# %% wrong: rank 0's empty letter is in the list | wrong | says: parts, not


# %% wrong: all letters in one long enough tensor | wrong | says: All letters lie in one tensor
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


# %% wrong: long enough for all, never cut | wrong | says: elements that nobody sent
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


# %% wrong: the length as a float | wrong | says: 8 bytes of int64 belong there
def tagged_mail(rank, world_size, letter):
    if rank:
        dist.send(torch.tensor([float(len(letter))]), 0, tag=1)
        dist.send(letter, 0, tag=2)
        return None
    letters = []
    for source in range(1, world_size):
        length = torch.zeros(1)
        dist.recv(length, source, tag=1)
        box = torch.empty(int(length))
        dist.recv(box, source, tag=2)
        letters.append(box)
    return letters


# %% wrong: nobody writes an empty letter | deadlocked | says: rank 1
def tagged_mail(rank, world_size, letter):
    if rank:
        if len(letter):
            dist.send(torch.tensor([len(letter)]), 0, tag=1)
            dist.send(letter, 0, tag=2)
        return None
    letters = []
    for source in range(1, world_size):
        length = torch.zeros(1, dtype=torch.int64)
        dist.recv(length, source, tag=1)
        box = torch.empty(int(length))
        dist.recv(box, source, tag=2)
        letters.append(box)
    return letters


# %% wrong: rank 0 says thank you | wrong | says: rank 0 calls send|rank 0 sends with tag 3
def tagged_mail(rank, world_size, letter):
    if rank:
        dist.send(torch.tensor([len(letter)]), 0, tag=1)
        dist.send(letter, 0, tag=2)
        dist.recv(torch.zeros(1), 0, tag=1)
        return None
    letters = []
    for source in range(1, world_size):
        length = torch.zeros(1, dtype=torch.int64)
        dist.recv(length, source, tag=1)
        box = torch.empty(int(length))
        dist.recv(box, source, tag=2)
        dist.send(torch.ones(1), source, tag=1)
        letters.append(box)
    return letters
