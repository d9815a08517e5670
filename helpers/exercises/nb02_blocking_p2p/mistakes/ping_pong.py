# %% rank 1 never adds
# Nobody adds 1. Rank 1 adds 1 to the ball before it sends the ball back.
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
# Rank 0 returns the ball that it sent. Either rank 1 sends the ball back before it adds 1, or rank 0
# receives into one tensor and sends and returns another.
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
# The ranks from 2 on also enter the loop. Only ranks 0 and 1 play; the others return None before any call.
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
# Ranks from 2 on return their tensor. They do not play and return None.
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
# Rank 0 returns the ball that it sent. Either rank 1 sends the ball back before it adds 1, or rank 0
# receives into one tensor and sends and returns another.
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
# The ball was converted to float32 and lost digits. Receive into a tensor of the ball's dtype:
# `torch.empty_like(ball)`.
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
# 1 is added twice in each round. Only rank 1 adds.
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


# %% one round only
# Only one round is played. The calls belong in a loop over `range(rounds)`.
def ping_pong(rank, world_size, ball, rounds):
    if rank == 0:
        dist.send(ball, 1)
        dist.recv(ball, 1)
    elif rank == 1:
        dist.recv(ball, 0)
        ball += 1
        dist.send(ball, 0)
    else:
        return None
    return ball


# %% the result is computed, not received
# The result is `ball + rounds`, computed in one step. In floats that is not always the same as adding 1 in
# each round: send on, and return, the ball that came back.
def ping_pong(rank, world_size, ball, rounds):
    if rank == 0:
        start = ball.clone()
        for _ in range(rounds):
            dist.send(start, 1)
            dist.recv(ball, 1)
        return start + rounds
    if rank == 1:
        for _ in range(rounds):
            dist.recv(ball, 0)
            dist.send(ball + 1, 0)
        return ball + rounds


# %% flat buffers
# The ball comes back flat. It has to keep its shape: receive into `torch.empty_like(ball)`, or into `ball`.
def ping_pong(rank, world_size, ball, rounds):
    if rank > 1:
        return None
    ball = ball.flatten()
    for _ in range(rounds):
        if rank == 0:
            dist.send(ball, 1)
            dist.recv(ball, 1)
        else:
            dist.recv(ball, 0)
            ball += 1
            dist.send(ball, 0)
    return ball


# %% rank 1 returns nothing
# Rank 1 returns None. It returns the ball as it last sent it.
def ping_pong(rank, world_size, ball, rounds):
    for _ in range(rounds):
        if rank == 0:
            dist.send(ball, 1)
            dist.recv(ball, 1)
        elif rank == 1:
            dist.recv(ball, 0)
            ball += 1
            dist.send(ball, 0)
    return ball if rank == 0 else None
