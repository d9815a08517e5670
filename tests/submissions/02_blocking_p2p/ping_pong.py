# %% right: in place
def ping_pong(rank, world_size, ball, rounds):
    if rank > 1:
        return None
    for _ in range(rounds):
        if rank == 0:
            dist.send(ball, 1)
            dist.recv(ball, 1)
        else:
            dist.recv(ball, 0)
            ball += 1
            dist.send(ball, 0)
    return ball


# %% right: a new tensor in each round, helper functions, any-source receive
def give(ball, to):
    dist.isend(ball, to).wait()


def take(like):
    box = torch.empty_like(like)
    dist.recv(box)
    return box


def ping_pong(rank, world_size, ball, rounds):
    if rank not in (0, 1):
        return
    last = ball
    while rounds:
        if rank == 0:
            give(last, 1)
            last = take(ball)
        if rank == 1:
            last = take(ball) + 1
            give(last, 0)
        rounds -= 1
    return last


# %% wrong: both send first | deadlocked | says: cycle of sends
def ping_pong(rank, world_size, ball, rounds):
    if rank > 1:
        return None
    for _ in range(rounds):
        dist.send(ball, 1 - rank)
        dist.recv(ball, 1 - rank)
        if rank == 1:
            ball += 1
    return ball


# %% wrong: computed without a ball | wrong | says: wanted:
def ping_pong(rank, world_size, ball, rounds):
    return ball + rounds if rank < 2 else None


# %% wrong: a broadcast plays for both | forbidden call | says: only send and recv may be used
def ping_pong(rank, world_size, ball, rounds):
    dist.broadcast(ball, 0)
    return ball + rounds if rank < 2 else None


# %% wrong: nobody waits for the ball that goes out | wrong | says: never waits for its isend
def ping_pong(rank, world_size, ball, rounds):
    if rank > 1:
        return None
    kept = []
    for _ in range(rounds):
        if rank == 0:
            kept.append(dist.isend(ball, 1))
            ball = torch.empty_like(ball)
            dist.recv(ball, 1)
        else:
            dist.recv(ball, 0)
            ball += 1
            dist.send(ball, 0)
    return ball
