# %% right: in rank order
def tagged_mail(rank, world_size, letter):
    if rank:
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


# %% right: whoever is ready first, sorted at the end
def tagged_mail(rank, world_size, letter):
    if rank != 0:
        dist.send(torch.tensor([letter.numel()], dtype=torch.int64), dst=0, tag=1)
        dist.send(letter, dst=0, tag=2)
        return
    found = {}
    while len(found) < world_size - 1:
        length = torch.empty(1, dtype=torch.long)
        source = dist.recv(length, tag=1)
        found[source] = torch.empty(length.item())
        dist.recv(found[source], src=source, tag=2)
    return [found[source] for source in sorted(found)]


# %% wrong: no tags | wrong | says: a length goes with tag 1
def tagged_mail(rank, world_size, letter):
    if rank:
        dist.send(torch.tensor([len(letter)]), 0)
        dist.send(letter, 0)
        return None
    letters = []
    for source in range(1, world_size):
        length = torch.zeros(1, dtype=torch.int64)
        dist.recv(length, source)
        box = torch.empty(int(length))
        dist.recv(box, source)
        letters.append(box)
    return letters


# %% wrong: the letter is sent before its length is awaited | deadlocked | says: The tags differ: rank 1 sends with tag 2
def tagged_mail(rank, world_size, letter):
    if rank:
        dist.send(letter, 0, tag=2)
        dist.send(torch.tensor([len(letter)]), 0, tag=1)
        return None
    letters = []
    for source in range(1, world_size):
        length = torch.zeros(1, dtype=torch.int64)
        dist.recv(length, source, tag=1)
        box = torch.empty(int(length))
        dist.recv(box, source, tag=2)
        letters.append(box)
    return letters


# %% wrong: gather_object does it in one call | forbidden call | says: only send and recv may be used
def tagged_mail(rank, world_size, letter):
    letters = [None] * world_size if rank == 0 else None
    dist.gather_object(letter, letters, dst=0)
    return letters[1:] if rank == 0 else None


# %% wrong: the length as a float | wrong | says: this tag is for the length, one int64: 8 bytes
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


# %% wrong: nobody writes an empty letter | deadlocked | says: Rank 1 has returned, but rank 0 still waits
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


# %% wrong: in the order of arrival, not of rank | wrong | says: in another order
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
