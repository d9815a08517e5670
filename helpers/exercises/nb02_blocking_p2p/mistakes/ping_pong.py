# %% rank 1 never adds
# Nobody has added 1: rank 1 does so before it sends.
def ping_pong(rank, world_size, ball, rounds):
    if rank > 1:
        return None
    for _ in range(rounds):
        if rank == 0:
            dist.send(ball, 1)
            dist.recv(ball, 1)
        else:
            dist.recv(ball, 0)
            dist.send(ball, 0)
    return ball


# %% adds after sending
# Rank 0 returns the ball that it was given: either rank 1 sends it back before it adds 1, or rank 0
# receives into another tensor than the one that it sends and returns.
def ping_pong(rank, world_size, ball, rounds):
    if rank > 1:
        return None
    for _ in range(rounds):
        if rank == 0:
            dist.send(ball, 1)
            dist.recv(ball, 1)
        else:
            dist.recv(ball, 0)
            dist.send(ball, 0)
            ball += 1
    return ball


# %% only two ranks thought of | deadlocked
# Only ranks 0 and 1 play; the others return None before the loop.
def ping_pong(rank, world_size, ball, rounds):
    for _ in range(rounds):
        if rank == 0:
            dist.send(ball, 1)
            dist.recv(ball, 1)
        else:
            dist.recv(ball, 0)
            ball += 1
            dist.send(ball, 0)
    return ball


# %% every rank above 1 returns its ball
# Only ranks 0 and 1 play; the others return None.
def ping_pong(rank, world_size, ball, rounds):
    if rank > 1:
        return ball
    for _ in range(rounds):
        if rank == 0:
            dist.send(ball, 1)
            dist.recv(ball, 1)
        else:
            dist.recv(ball, 0)
            ball += 1
            dist.send(ball, 0)
    return ball


# %% rank 0 looks at what it sent, not at what came back
# Rank 0 returns the ball that it was given: either rank 1 sends it back before it adds 1, or rank 0
# receives into another tensor than the one that it sends and returns.
def ping_pong(rank, world_size, ball, rounds):
    box = torch.empty_like(ball)
    for _ in range(rounds if rank < 2 else 0):
        if rank == 0:
            dist.send(ball, 1)
            dist.recv(box, 1)
        else:
            dist.recv(ball, 0)
            ball += 1
            dist.send(ball, 0)
    return ball if rank < 2 else None


# %% by way of float32
# This is the right value as float32 holds it. Keep the dtype of what you are given.
def ping_pong(rank, world_size, ball, rounds):
    if rank > 1:
        return None
    box = ball.float()
    for _ in range(rounds):
        if rank == 0:
            dist.send(box, 1)
            dist.recv(box, 1)
        else:
            dist.recv(box, 0)
            box += 1
            dist.send(box, 0)
    return box.to(ball.dtype)


# %% both add
# 1 is added twice in a round: only rank 1 adds.
def ping_pong(rank, world_size, ball, rounds):
    if rank > 1:
        return None
    for _ in range(rounds):
        if rank == 0:
            dist.send(ball, 1)
            dist.recv(ball, 1)
            ball += 1
        else:
            dist.recv(ball, 0)
            ball += 1
            dist.send(ball, 0)
    return ball
