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
# After the restart everything begins again in epoch 0: begin from the given `state`.
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    shares, epoch, used = read(rank, world_size, samples, batch_size, seed, steps, 0, 0)
    return shares, {"epoch": epoch, "used": used}


# %% only the epoch is kept
# After the restart the epoch begins again: the state must also say how many of its samples are used.
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    epoch = state["epoch"] if state else 0
    shares, epoch, _ = read(rank, world_size, samples, batch_size, seed, steps, epoch, 0)
    return shares, {"epoch": epoch}


# %% only the place is kept
# After the restart the position is kept, but the order is epoch 0's: the state must also say which epoch it
# is.
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    used = state["used"] if state else 0
    shares, _, used = read(rank, world_size, samples, batch_size, seed, steps, 0, used)
    return shares, {"used": used}


# %% steps are kept
# The position is kept as a number of steps, but with another world size a step has a different number of
# samples. Keep the number of samples that all ranks together have used.
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
# The position counts the samples of one rank: keep the number that all ranks together have used.
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    epoch, own = (state["epoch"], state["own"]) if state else (0, 0)
    shares, epoch, used = read(rank, world_size, samples, batch_size, seed, steps, epoch, own)
    return shares, {"epoch": epoch, "own": used // world_size}


# %% every epoch has the same order
# Every epoch has the same order: seed a new generator with `seed + epoch` for each epoch.
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
# The last step of an epoch is left out: return it, even if it is short.
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
# The last step of an epoch is filled up with samples of the next epoch: leave it short.
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    total = state["total"] if state else 0
    shares, whole = [], batch_size * world_size
    for _ in range(steps):
        places = [divmod(k, samples) for k in range(total, total + whole)]
        now = [order_of(samples, seed, epoch)[k] for epoch, k in places]
        shares.append(now[rank::world_size])
        total += whole
    return shares, {"total": total}


# %% padded as DistributedSampler pads
# The last step of an epoch is padded with samples from the epoch's start: leave it short.
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
# Every rank reads all samples of a step: `now[rank::world_size]` is one rank's share of the step's samples
# `now`.
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
# A step takes only `batch_size` samples for all ranks together. It should take that many for each rank.
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
# The order does not depend on `seed`: seed the generator with `seed + epoch`.
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    epoch, used = (state["epoch"], state["used"]) if state else (0, 0)
    shares, epoch, used = read(rank, world_size, samples, batch_size, 0, steps, epoch, used)
    return shares, {"epoch": epoch, "used": used}


# %% the order is kept in the state
# The state needs only a few integers: seed and epoch are enough to draw the order again.
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
# The state needs only a few integers: seed and epoch are enough to draw the order again.
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    epoch, used = (state["epoch"], state["used"]) if state else (0, 0)
    shares, epoch, used = read(rank, world_size, samples, batch_size, seed, steps, epoch, used)
    return shares, {"epoch": epoch, "used": used, "generator": torch.get_rng_state()}


# %% no state comes back | crashed
# Return exactly two things: the list of this rank's samples, and the state.
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    return read(rank, world_size, samples, batch_size, seed, steps, 0, 0)


# %% torch's own generator is seeded
# `torch.manual_seed`, and drawing without `generator=`, change the numbers that other code draws later,
# such as dropout. Use a generator of your own: `torch.Generator().manual_seed(...)`.
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


# %% steps are counted through all epochs
# The position is kept as a number of steps, but with another world size a step has a different number of
# samples. Keep the number of samples that all ranks together have used.
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    done = state["steps"] if state else 0
    size = batch_size * world_size
    shares = []
    for k in range(done, done + steps):
        epoch, i = divmod(k, -(-samples // size))
        shares.append(order_of(samples, seed, epoch)[i * size : (i + 1) * size][rank::world_size])
    return shares, {"steps": done + steps}


# %% the last step is read again
# The last step before the stop is read again: the state must say where the next step begins.
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    epoch, used = (state["epoch"], state["used"]) if state else (0, 0)
    shares, at = [], (epoch, used)
    for _ in range(steps):
        at = (epoch, used)
        share, epoch, used = read(rank, world_size, samples, batch_size, seed, 1, epoch, used)
        shares += share
    return shares, {"epoch": at[0], "used": at[1]}


# %% not shuffled
# The samples are not shuffled: `torch.randperm` gives an epoch's order.
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    epoch, used = (state["epoch"], state["used"]) if state else (0, 0)
    shares = []
    for _ in range(steps):
        now = list(range(samples))[used : used + batch_size * world_size]
        shares.append(now[rank::world_size])
        used += len(now)
        if used == samples:
            epoch, used = epoch + 1, 0
    return shares, {"epoch": epoch, "used": used}


# %% the order is drawn once a job
# After the end of an epoch the job keeps the old order: draw a new one with `seed + epoch` in each epoch.
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    epoch, used = (state["epoch"], state["used"]) if state else (0, 0)
    order = order_of(samples, seed, epoch)
    shares = []
    for _ in range(steps):
        now = order[used : used + batch_size * world_size]
        shares.append(now[rank::world_size])
        used += len(now)
        if used == samples:
            epoch, used = epoch + 1, 0
    return shares, {"epoch": epoch, "used": used}


# %% short steps are padded until the shares are equal
# A short step is padded until all ranks have equally many samples: shares may differ by one, and no sample
# is read twice in an epoch.
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    epoch, used = (state["epoch"], state["used"]) if state else (0, 0)
    shares = []
    for _ in range(steps):
        order = order_of(samples, seed, epoch)
        now = order[used : used + batch_size * world_size]
        used += len(now)
        while len(now) % world_size:
            now.append(order[0])
        shares.append(now[rank::world_size])
        if used == samples:
            epoch, used = epoch + 1, 0
    return shares, {"epoch": epoch, "used": used}


# %% blocks of batch_size
# The first ranks take full batches and the last ranks what is left: deal a short step evenly,
# `now[rank::world_size]`.
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    epoch, used = (state["epoch"], state["used"]) if state else (0, 0)
    shares = []
    for _ in range(steps):
        now = order_of(samples, seed, epoch)[used : used + batch_size * world_size]
        shares.append(now[rank * batch_size : (rank + 1) * batch_size])
        used += len(now)
        if used == samples:
            epoch, used = epoch + 1, 0
    return shares, {"epoch": epoch, "used": used}


# %% the order is drawn once a job, before the epoch is counted on
# After the end of an epoch the job keeps the old order: draw a new one with `seed + epoch` in each epoch.
def resume_the_stream(rank, world_size, samples, batch_size, seed, steps, state):
    epoch, used = (state["epoch"], state["used"]) if state else (0, 0)
    order = order_of(samples, seed, epoch)
    shares = []
    for _ in range(steps):
        if used == samples:
            epoch, used = epoch + 1, 0
        now = order[used : used + batch_size * world_size]
        shares.append(now[rank::world_size])
        used += len(now)
    return shares, {"epoch": epoch, "used": used}
