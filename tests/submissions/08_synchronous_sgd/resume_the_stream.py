def order_of(samples, seed, epoch):
    return torch.randperm(samples, generator=torch.Generator().manual_seed(seed + epoch)).tolist()


def read(rank, world_size, samples, batch_size, seed, steps, epoch, used):
    shares = []
    for _ in range(steps):
        now = order_of(samples, seed, epoch)[used : used + batch_size * world_size]
        shares.append(now[rank::world_size])
        used += len(now)
        if used == samples:
            epoch, used = epoch + 1, 0
    return shares, epoch, used


# %% right: epoch and samples used
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    epoch, used = (state["epoch"], state["used"]) if state else (0, 0)
    shares, epoch, used = read(rank, world_size, samples, batch_size, seed, steps, epoch, used)
    return shares, {"epoch": epoch, "used": used}


# %% right: one number for all epochs, chunks of tensors, the epoch's end seen when it begins
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    total = (state or {"total": 0})["total"]
    shares = []
    while len(shares) < steps:
        epoch, used = divmod(total, samples)
        generator = torch.Generator()
        generator.manual_seed(seed + epoch)
        order = torch.randperm(samples, generator=generator)
        now = order[used:][: batch_size * world_size]
        shares.append(now.tensor_split(world_size)[rank])
        total += len(now)
    return shares, {"total": total}


# %% right: what is left, counted down
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    state = dict(state or {"epoch": 0, "left": samples})
    shares = ()
    for _ in range(steps):
        if not state["left"]:
            state = {"epoch": state["epoch"] + 1, "left": samples}
        now = order_of(samples, seed, state["epoch"])[-state["left"] :]
        now = now[: batch_size * world_size]
        shares += (now[world_size - 1 - rank :: world_size],)
        state["left"] -= len(now)
    return shares, state


# %% right: torch's own generator, given back as it was
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    epoch, used = (state["epoch"], state["used"]) if state else (0, 0)
    with torch.random.fork_rng():
        shares = []
        for _ in range(steps):
            torch.manual_seed(seed + epoch)
            now = torch.randperm(samples).tolist()[used : used + batch_size * world_size]
            shares.append(now[rank::world_size])
            used += len(now)
            if used == samples:
                epoch, used = epoch + 1, 0
    return shares, {"epoch": epoch, "used": used}
