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


# %% the state does not count
# After the restart all begins anew, in epoch 0: does the state that is given count?
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    shares, epoch, used = read(rank, world_size, samples, batch_size, seed, steps, 0, 0)
    return shares, {"epoch": epoch, "used": used}


# %% only the epoch is kept
# After the restart the epoch begins again: the state must say how far it had come, too.
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    epoch = state["epoch"] if state else 0
    shares, epoch, _ = read(rank, world_size, samples, batch_size, seed, steps, epoch, 0)
    return shares, {"epoch": epoch}


# %% only the place is kept
# After the restart the place is kept, but not the epoch: this is the order of epoch 0.
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    used = state["used"] if state else 0
    shares, _, used = read(rank, world_size, samples, batch_size, seed, steps, 0, used)
    return shares, {"used": used}


# %% steps are kept
# The place is kept as a number of steps, and steps of another world size are of another size.
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


# %% a rank's own samples are counted
# The place is kept as the samples of one rank: all ranks together have used more.
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    epoch, own = (state["epoch"], state["own"]) if state else (0, 0)
    shares, epoch, used = read(rank, world_size, samples, batch_size, seed, steps, epoch, own)
    return shares, {"epoch": epoch, "own": used // world_size}


# %% every epoch has the same order
# Every epoch has the same order: the generator is seeded with `seed + epoch`.
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    used = state["used"] if state else 0
    order = order_of(samples, seed, 0)
    shares = []
    for _ in range(steps):
        now = order[used : used + batch_size * world_size]
        shares.append(now[rank::world_size])
        used = (used + len(now)) % samples
    return shares, {"used": used}


# %% the short step is left out
# The last step of an epoch is missing: it may be short.
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


# %% the next epoch fills the last step up
# The last step of an epoch is filled up with samples of the next one: let it be short.
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


# %% padded as DistributedSampler pads
# The last step of an epoch is filled up from the epoch's start: let it be short.
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


# %% all ranks read the same
# Each sample of a step goes to one rank, evenly: `now[rank::world_size]` is a rank's share.
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


# %% a step has batch_size samples in all
# A step takes `batch_size` samples for each rank, not for all of them together.
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


# %% the seed is the epoch
# The order does not depend on `seed`: the generator is seeded with `seed + epoch`.
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    epoch, used = (state["epoch"], state["used"]) if state else (0, 0)
    shares, epoch, used = read(rank, world_size, samples, batch_size, 0, steps, epoch, used)
    return shares, {"epoch": epoch, "used": used}


# %% the order is kept in the state
# A dict with a few whole numbers is enough; seed and epoch give the epoch's order again.
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


# %% a generator's state is kept
# A dict with a few whole numbers is enough; seed and epoch give the epoch's order again.
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    epoch, used = (state["epoch"], state["used"]) if state else (0, 0)
    shares, epoch, used = read(rank, world_size, samples, batch_size, seed, steps, epoch, used)
    return shares, {"epoch": epoch, "used": used, "generator": torch.get_rng_state()}


# %% no state comes back | crashed
# Return two things: the list of this rank's samples, and the state.
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    return read(rank, world_size, samples, batch_size, seed, steps, 0, 0)


# %% torch's own generator is seeded
# `torch.manual_seed`, and a draw without `generator=`, change what all others draw later: dropout, say.
# Make a generator: `torch.Generator().manual_seed(...)`.
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
