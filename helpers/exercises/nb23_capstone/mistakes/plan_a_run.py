def candidates(model, cluster, batch):
    """All layouts that the three conditions of the task allow."""
    for tp in range(1, cluster["gpus_per_host"] + 1):
        for pp in range(1, model["layers"] + 1):
            dp, rest = divmod(cluster["gpus"], tp * pp)
            if rest or cluster["gpus_per_host"] % tp or model["layers"] % pp or not dp:
                continue
            if batch % dp == 0:
                yield dp, tp, pp


def held(model, cluster, batch, layout):
    dp, tp, pp = layout
    own = model["parameters"] / (tp * pp)
    kept = 34 * model["sequence"] * model["hidden"] * model["layers"] / pp / tp
    return 4 * own + 12 * own / dp + kept * min(batch // dp, pp)


def slot_of(model, cluster, layout):
    dp, tp, pp = layout
    compute = 6 * model["parameters"] / (tp * pp) * model["sequence"] / cluster["flops"]
    message = 2 * model["sequence"] * model["hidden"]
    ring = 2 * (tp - 1) / tp * message / cluster["host_bandwidth"]
    return compute + 4 * model["layers"] / pp * ring


def sync(model, cluster, layout):
    dp, tp, pp = layout
    own = model["parameters"] / (tp * pp)
    return 2 * (dp - 1) / dp * 2 * own / cluster["network_bandwidth"]


def took(model, cluster, batch, layout):
    dp, tp, pp = layout
    return (batch // dp + pp - 1) * slot_of(model, cluster, layout) + sync(model, cluster, layout)


def planned(model, cluster, batch, allowed, divide=lambda batch, dp: batch // dp):
    """Search with conditions of one's own; `divide` gives a replica's microbatches."""
    found = []
    for tp in range(1, cluster["gpus_per_host"] + 1):
        for pp in range(1, model["layers"] + 1):
            dp, rest = divmod(cluster["gpus"], tp * pp)
            if rest or not allowed(dp, tp, pp):
                continue
            m, own = divide(batch, dp), model["parameters"] / (tp * pp)
            kept = 34 * model["sequence"] * model["hidden"] * model["layers"] / pp / tp
            need = 4 * own + 12 * own / dp + kept * min(m, pp)
            time = (m + pp - 1) * slot_of(model, cluster, (dp, tp, pp))
            time += sync(model, cluster, (dp, tp, pp))
            if need <= cluster["memory"]:
                found.append((time, (dp, tp, pp), need))
    if not found:
        return None
    time, at, need = min(found)
    return at, time, need


# %% the bubble is forgotten
# The bubble is missing: a step has m + pp - 1 slots, not m.
def plan_a_run(model, cluster, batch):
    def time(at):
        return batch // at[0] * slot_of(model, cluster, at) + sync(model, cluster, at)

    fits = [
        (time(at), at, held(model, cluster, batch, at))
        for at in candidates(model, cluster, batch)
        if held(model, cluster, batch, at) <= cluster["memory"]
    ]
    return (min(fits)[1], min(fits)[0], min(fits)[2]) if fits else None


# %% the memory is not looked at
# This layout does not fit. Consider only layouts that need at most `memory` bytes.
def plan_a_run(model, cluster, batch):
    at = min(candidates(model, cluster, batch), key=lambda at: took(model, cluster, batch, at))
    return at, took(model, cluster, batch, at), held(model, cluster, batch, at)


# %% the first that fits, not the fastest
# This is not the fastest layout that fits. Try all of them, also with sizes that are not powers of two, and
# take the one with the fewest seconds.
def plan_a_run(model, cluster, batch):
    for at in candidates(model, cluster, batch):
        if held(model, cluster, batch, at) <= cluster["memory"]:
            return at, took(model, cluster, batch, at), held(model, cluster, batch, at)


# %% all 16 bytes in shards
# All 16 bytes of a parameter are divided by dp. ZeRO-1 shards the optimizer's 12 bytes only, not the other
# 4.
def plan_a_run(model, cluster, batch):
    def need(at):
        dp, tp, pp = at
        state = 16 * model["parameters"] / (tp * pp) / dp
        kept = 34 * model["sequence"] * model["hidden"] * model["layers"] / pp / tp
        return state + kept * min(batch // dp, pp)

    fits = [at for at in candidates(model, cluster, batch) if need(at) <= cluster["memory"]]
    if not fits:
        return None
    best = min(fits, key=lambda at: took(model, cluster, batch, at))
    return best, took(model, cluster, batch, best), need(best)


# %% nothing sharded, as plain DDP
# Nothing is sharded: ZeRO-1 divides the optimizer's 12 bytes by dp.
def plan_a_run(model, cluster, batch):
    def need(at):
        dp, tp, pp = at
        kept = 34 * model["sequence"] * model["hidden"] * model["layers"] / pp / tp
        return 16 * model["parameters"] / (tp * pp) + kept * min(batch // dp, pp)

    fits = [at for at in candidates(model, cluster, batch) if need(at) <= cluster["memory"]]
    if not fits:
        return None
    best = min(fits, key=lambda at: took(model, cluster, batch, at))
    return best, took(model, cluster, batch, best), need(best)


# %% one microbatch in memory, whatever the schedule holds
# These are the activations of one microbatch. 1F1B holds min(m, pp) of them.
def plan_a_run(model, cluster, batch):
    def need(at):
        dp, tp, pp = at
        own = model["parameters"] / (tp * pp)
        kept = 34 * model["sequence"] * model["hidden"] * model["layers"] / pp / tp
        return 4 * own + 12 * own / dp + kept

    fits = [at for at in candidates(model, cluster, batch) if need(at) <= cluster["memory"]]
    if not fits:
        return None
    best = min(fits, key=lambda at: took(model, cluster, batch, at))
    return best, took(model, cluster, batch, best), need(best)


# %% an all_reduce counted as one trip
# The gradients' traffic counts once around the ring. An all_reduce sends 2 (dp - 1) / dp of its bytes.
def plan_a_run(model, cluster, batch):
    def time(at):
        return took(model, cluster, batch, at) - sync(model, cluster, at) / 2

    fits = [
        at
        for at in candidates(model, cluster, batch)
        if held(model, cluster, batch, at) <= cluster["memory"]
    ]
    best = min(fits, key=time, default=None)
    return best and (best, time(best), held(model, cluster, batch, best))


# %% every rank's microbatches are the whole batch
# The number of microbatches is wrong: a replica has m = batch / dp of them.
def plan_a_run(model, cluster, batch):
    def time(at):
        return (batch + at[2] - 1) * slot_of(model, cluster, at) + sync(model, cluster, at)

    fits = [
        at
        for at in candidates(model, cluster, batch)
        if held(model, cluster, batch, at) <= cluster["memory"]
    ]
    best = min(fits, key=time, default=None)
    return best and (best, time(best), held(model, cluster, batch, best))


# %% the smallest where nothing fits
# No layout fits here: return None.
def plan_a_run(model, cluster, batch):
    fits = list(candidates(model, cluster, batch))
    fits = [at for at in fits if held(model, cluster, batch, at) <= cluster["memory"]] or fits
    best = min(fits, key=lambda at: took(model, cluster, batch, at))
    return best, took(model, cluster, batch, best), held(model, cluster, batch, best)


# %% stages in powers of two only
# This is not the fastest layout that fits. Try all of them, also with sizes that are not powers of two, and
# take the one with the fewest seconds.
def plan_a_run(model, cluster, batch):
    fits = [
        at
        for at in candidates(model, cluster, batch)
        if held(model, cluster, batch, at) <= cluster["memory"]
        and at[2] in (1, 2, 4, 8, 16, 32, 64)
    ]
    best = min(fits, key=lambda at: took(model, cluster, batch, at), default=None)
    return best and (best, took(model, cluster, batch, best), held(model, cluster, batch, best))


# %% only the layout comes back
# Return three things, ((dp, tp, pp), seconds, nbytes), or None where nothing fits.
def plan_a_run(model, cluster, batch):
    fits = [
        at
        for at in candidates(model, cluster, batch)
        if held(model, cluster, batch, at) <= cluster["memory"]
    ]
    return min(fits, key=lambda at: took(model, cluster, batch, at), default=None)


# %% tp in powers of two only
# This is not the fastest layout that fits. Try all of them, also with sizes that are not powers of two, and
# take the one with the fewest seconds.
def plan_a_run(model, cluster, batch):
    def allowed(dp, tp, pp):
        return (
            tp in (1, 2, 4, 8)
            and cluster["gpus_per_host"] % tp == 0
            and model["layers"] % pp == 0
            and batch % dp == 0
        )

    return planned(model, cluster, batch, allowed)


# %% something comes back where nothing fits
# No layout fits here: return None.
def plan_a_run(model, cluster, batch):
    def allowed(dp, tp, pp):
        fits = cluster["gpus_per_host"] % tp == 0 and model["layers"] % pp == 0
        return fits and batch % dp == 0

    return planned(model, cluster, batch, allowed) or ((0, 0, 0), float("inf"), 0)


# %% the three sizes in another order
# The sizes are in another order. Return (dp, tp, pp).
def plan_a_run(model, cluster, batch):
    def allowed(dp, tp, pp):
        fits = cluster["gpus_per_host"] % tp == 0 and model["layers"] % pp == 0
        return fits and batch % dp == 0

    found = planned(model, cluster, batch, allowed)
    return found and ((found[0][1], found[0][0], found[0][2]), *found[1:])


# %% a layout that needs just all memory is left out
# A layout that needs exactly `memory` bytes fits, too: nbytes <= memory.
def plan_a_run(model, cluster, batch):
    plans = [
        (took(model, cluster, batch, at), at, held(model, cluster, batch, at))
        for at in candidates(model, cluster, batch)
    ]
    fitting = [plan for plan in plans if plan[2] < cluster["memory"]]
    return (min(fitting)[1], min(fitting)[0], min(fitting)[2]) if fitting else None


# %% the least bytes
# This is the layout with the fewest bytes. Return the one with the fewest seconds.
def plan_a_run(model, cluster, batch):
    at = min(candidates(model, cluster, batch), key=lambda at: held(model, cluster, batch, at))
    if held(model, cluster, batch, at) > cluster["memory"]:
        return None
    return at, took(model, cluster, batch, at), held(model, cluster, batch, at)


# %% the network's bandwidth within a host
# TP traffic is divided by the network's bandwidth. A tp group stays within a host: use host_bandwidth.
def plan_a_run(model, cluster, batch):
    slow = {**cluster, "host_bandwidth": cluster["network_bandwidth"]}
    fits = [
        at
        for at in candidates(model, cluster, batch)
        if held(model, cluster, batch, at) <= cluster["memory"]
    ]
    best = min(fits, key=lambda at: took(model, slow, batch, at), default=None)
    return best and (best, took(model, slow, batch, best), held(model, cluster, batch, best))


# %% pipelines of 64 stages at most
# This is not the fastest layout that fits. Try all of them, also with sizes that are not powers of two, and
# take the one with the fewest seconds.
def plan_a_run(model, cluster, batch):
    fits = [
        (took(model, cluster, batch, at), at, held(model, cluster, batch, at))
        for at in candidates(model, cluster, batch)
        if at[2] <= 64 and held(model, cluster, batch, at) <= cluster["memory"]
    ]
    return (min(fits)[1], min(fits)[0], min(fits)[2]) if fits else None


# %% all parameters are summed over dp
# The gradients' traffic counts all parameters of the model. A GPU has parameters / (tp * pp) of them, and
# its all_reduce sends those only.
def plan_a_run(model, cluster, batch):
    def time(at):
        slots = batch // at[0] + at[2] - 1
        sent = 2 * (at[0] - 1) / at[0] * 2 * model["parameters"] / cluster["network_bandwidth"]
        return slots * slot_of(model, cluster, at) + sent

    fits = [
        (time(at), at, held(model, cluster, batch, at))
        for at in candidates(model, cluster, batch)
        if held(model, cluster, batch, at) <= cluster["memory"]
    ]
    return (min(fits)[1], min(fits)[0], min(fits)[2]) if fits else None


# %% the activations of all microbatches
# The activations of all m microbatches are counted. 1F1B holds min(m, pp) of them.
def plan_a_run(model, cluster, batch):
    def need(at):
        dp, tp, pp = at
        own = model["parameters"] / (tp * pp)
        kept = 34 * model["sequence"] * model["hidden"] * model["layers"] / pp / tp
        return 4 * own + 12 * own / dp + kept * (batch // dp)

    fits = [
        (took(model, cluster, batch, at), at, need(at))
        for at in candidates(model, cluster, batch)
        if need(at) <= cluster["memory"]
    ]
    return (min(fits)[1], min(fits)[0], min(fits)[2]) if fits else None
