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


# %% wrong: the state does not count | wrong | says: all begins anew
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    shares, epoch, used = read(rank, world_size, samples, batch_size, seed, steps, 0, 0)
    return shares, {"epoch": epoch, "used": used}


# %% wrong: only the epoch is kept | wrong | says: the epoch begins again
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    epoch = state["epoch"] if state else 0
    shares, epoch, _ = read(rank, world_size, samples, batch_size, seed, steps, epoch, 0)
    return shares, {"epoch": epoch}


# %% wrong: only the place is kept | wrong | says: this is the order of epoch 0
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    used = state["used"] if state else 0
    shares, _, used = read(rank, world_size, samples, batch_size, seed, steps, 0, used)
    return shares, {"used": used}


# %% wrong: steps are kept | wrong | says: steps of another world size
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    epoch, step = (state["epoch"], state["step"]) if state else (0, 0)
    shares = []
    for _ in range(steps):
        used = step * batch_size * world_size
        now = order_of(samples, seed, epoch)[used : used + batch_size * world_size]
        shares.append(now[rank::world_size])
        step += 1
        if used + batch_size * world_size >= samples:
            epoch, step = epoch + 1, 0
    return shares, {"epoch": epoch, "step": step}


# %% wrong: a rank's own samples are counted | wrong | says: as the samples of one rank
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    epoch, own = (state["epoch"], state["own"]) if state else (0, 0)
    shares, epoch, used = read(rank, world_size, samples, batch_size, seed, steps, epoch, own)
    return shares, {"epoch": epoch, "own": used // world_size}


# %% wrong: every epoch has the same order | wrong | says: Every epoch has the same order
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    used = state["used"] if state else 0
    order = order_of(samples, seed, 0)
    shares = []
    for _ in range(steps):
        now = order[used : used + batch_size * world_size]
        shares.append(now[rank::world_size])
        used = (used + len(now)) % samples
    return shares, {"used": used}


# %% wrong: the short step is left out | wrong | says: The last step of an epoch is missing
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    epoch, used = (state["epoch"], state["used"]) if state else (0, 0)
    shares, whole = [], batch_size * world_size
    for _ in range(steps):
        if used and used + whole > samples:
            epoch, used = epoch + 1, 0
        now = order_of(samples, seed, epoch)[used : used + whole]
        shares.append(now[rank::world_size])
        used += len(now)
    return shares, {"epoch": epoch, "used": used}


# %% wrong: the next epoch fills the last step up | wrong | says: filled up with samples of the next one
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    total = state["total"] if state else 0
    shares, whole = [], batch_size * world_size
    for _ in range(steps):
        epoch, used = divmod(total, samples)
        now = (order_of(samples, seed, epoch) + order_of(samples, seed, epoch + 1))[
            used : used + whole
        ]
        shares.append(now[rank::world_size])
        total += whole
    return shares, {"total": total}


# %% wrong: padded as DistributedSampler pads | wrong | says: filled up from the epoch's start
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    epoch, used = (state["epoch"], state["used"]) if state else (0, 0)
    shares, whole = [], batch_size * world_size
    for _ in range(steps):
        order = order_of(samples, seed, epoch)
        now = (
            (order + order)[used : used + whole]
            if samples >= whole
            else (order + order[: whole - samples])
        )
        shares.append(now[rank::world_size])
        used += whole
        if used >= samples:
            epoch, used = epoch + 1, 0
    return shares, {"epoch": epoch, "used": used}


# %% wrong: all ranks read the same | wrong | says: Each sample of a step goes to one rank
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    epoch, used = (state["epoch"], state["used"]) if state else (0, 0)
    shares = []
    for _ in range(steps):
        now = order_of(samples, seed, epoch)[used : used + batch_size * world_size]
        shares.append(now)
        used += len(now)
        if used == samples:
            epoch, used = epoch + 1, 0
    return shares, {"epoch": epoch, "used": used}


# %% wrong: a step has batch_size samples in all | wrong | says: `batch_size` samples for each rank
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    epoch, used = (state["epoch"], state["used"]) if state else (0, 0)
    shares = []
    for _ in range(steps):
        now = order_of(samples, seed, epoch)[used : used + batch_size]
        shares.append(now[rank::world_size])
        used += len(now)
        if used == samples:
            epoch, used = epoch + 1, 0
    return shares, {"epoch": epoch, "used": used}


# %% wrong: the seed is the epoch | wrong | says: does not depend on `seed`
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    epoch, used = (state["epoch"], state["used"]) if state else (0, 0)
    shares, epoch, used = read(rank, world_size, samples, batch_size, 0, steps, epoch, used)
    return shares, {"epoch": epoch, "used": used}


# %% wrong: the order is kept in the state | wrong | says: A dict with a few whole numbers is enough
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    epoch, order = (state["epoch"], state["order"]) if state else (0, order_of(samples, seed, 0))
    shares = []
    for _ in range(steps):
        now, order = order[: batch_size * world_size], order[batch_size * world_size :]
        shares.append(now[rank::world_size])
        if not order:
            epoch += 1
            order = order_of(samples, seed, epoch)
    return shares, {"epoch": epoch, "order": order}


# %% wrong: a generator's state is kept | wrong | says: JSON cannot hold the state
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    epoch, used = (state["epoch"], state["used"]) if state else (0, 0)
    shares, epoch, used = read(rank, world_size, samples, batch_size, seed, steps, epoch, used)
    return shares, {"epoch": epoch, "used": used, "generator": torch.get_rng_state()}


# %% wrong: no state comes back | crashed | says: Return two things
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    return read(rank, world_size, samples, batch_size, seed, steps, 0, 0)


# %% wrong: full batches first, and what is left for the last rank | wrong | says: an even deal differs by one at most
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    epoch, used = (state["epoch"], state["used"]) if state else (0, 0)
    shares = []
    for _ in range(steps):
        order = torch.randperm(samples, generator=torch.Generator().manual_seed(seed + epoch)).tolist()
        now = order[used : used + batch_size * world_size]
        shares.append(now[rank * batch_size : (rank + 1) * batch_size])
        used += len(now)
        if used == samples:
            epoch, used = epoch + 1, 0
    return shares, {"epoch": epoch, "used": used}


# %% wrong: torch's own generator is seeded | wrong | says: change what all others draw later
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    epoch, used = (state["epoch"], state["used"]) if state else (0, 0)
    shares = []
    for _ in range(steps):
        torch.manual_seed(seed + epoch)
        now = torch.randperm(samples).tolist()[used : used + batch_size * world_size]
        shares.append(now[rank::world_size])
        used += len(now)
        if used == samples:
            epoch, used = epoch + 1, 0
    return shares, {"epoch": epoch, "used": used}


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
