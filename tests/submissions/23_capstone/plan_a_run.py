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


# %% right: min of the tuples that fit
def plan_a_run(model, cluster, batch):
    plans = [
        (took(model, cluster, batch, at), at, held(model, cluster, batch, at))
        for at in candidates(model, cluster, batch)
    ]
    fitting = [plan for plan in plans if plan[2] <= cluster["memory"]]
    if not fitting:
        return None
    seconds, layout, nbytes = min(fitting)
    return layout, seconds, nbytes


# %% right: one loop, the best so far, a list for the layout
def plan_a_run(model, cluster, batch):
    N, L, h, s = (model[k] for k in ("parameters", "layers", "hidden", "sequence"))
    best = None
    for pp in range(1, L + 1):
        for tp in (1, 2, 3, 4, 6, 8):
            dp = cluster["gpus"] // (tp * pp)
            if dp * tp * pp != cluster["gpus"] or cluster["gpus_per_host"] % tp:
                continue
            if L % pp or batch % dp:
                continue
            m, n = batch // dp, N / tp / pp
            nbytes = n * (2 + 2 + 12 / dp) + min(m, pp) * 34 * s * h * (L // pp) / tp
            if nbytes > cluster["memory"]:
                continue
            reduce = 2 * (tp - 1) / tp * (2 * s * h) / cluster["host_bandwidth"]
            slot = 6 * n * s / cluster["flops"] + 4 * (L // pp) * reduce
            seconds = slot * (m + pp - 1) + 4 * n * (dp - 1) / dp / cluster["network_bandwidth"]
            if best is None or seconds < best[1]:
                best = [dp, tp, pp], seconds, nbytes
    return best


# %% right: every tp, pp and dp is tried
def plan_a_run(model, cluster, batch):
    best, seconds = None, float("inf")
    for tp in range(1, cluster["gpus_per_host"] + 1):
        for dp in range(1, batch + 1):
            pp = cluster["gpus"] / (dp * tp)
            allowed = not (cluster["gpus_per_host"] % tp or batch % dp or model["layers"] % pp)
            if pp != int(pp) or not allowed:
                continue
            at = (dp, tp, int(pp))
            took_here, need = took(model, cluster, batch, at), held(model, cluster, batch, at)
            if need <= cluster["memory"] and took_here < seconds:
                best, seconds = (at, took_here, need), took_here
    return best


# %% right: numbers rounded to whole bytes, torch scalars
def plan_a_run(model, cluster, batch):
    found = None
    for layout in candidates(model, cluster, batch):
        nbytes = round(held(model, cluster, batch, layout))
        seconds = torch.tensor(took(model, cluster, batch, layout), dtype=torch.float64)
        if nbytes <= cluster["memory"] and (found is None or seconds < found[1]):
            found = (layout, seconds, nbytes)
    return found


# %% right: sorted from the fastest, the first that fits; dp chosen first
from itertools import product


def plan_a_run(model: dict, cluster: dict, batch: int):
    gpus, per_host = cluster["gpus"], cluster["gpus_per_host"]
    tps = [t for t in range(1, per_host + 1) if per_host % t == 0]
    pps = [p for p in range(1, model["layers"] + 1) if model["layers"] % p == 0]
    meshes = [(gpus // (t * p), t, p) for t, p in product(tps, pps) if gpus % (t * p) == 0]
    meshes = [mesh for mesh in meshes if batch % mesh[0] == 0]
    for mesh in sorted(meshes, key=lambda mesh: took(model, cluster, batch, mesh)):
        if held(model, cluster, batch, mesh) <= cluster["memory"]:
            return mesh, took(model, cluster, batch, mesh), held(model, cluster, batch, mesh)


# %% wrong: tensor parallelism over several hosts | wrong | says: leaves the host of \d GPUs: `tp` must divide
def plan_a_run(model, cluster, batch):
    tp = 2 * cluster["gpus_per_host"]
    at = (cluster["gpus"] // tp, tp, 1)
    return at, took(model, cluster, batch, at), held(model, cluster, batch, at)


# %% wrong: more replicas than samples | wrong | says: `dp` must divide `batch`
def plan_a_run(model, cluster, batch):
    at = (cluster["gpus"], 1, 1)
    return at, took(model, cluster, batch, at), held(model, cluster, batch, at)


# %% wrong: printed | wrong | says: prints, but returns nothing
def plan_a_run(model, cluster, batch):
    for at in candidates(model, cluster, batch):
        print(at, took(model, cluster, batch, at), held(model, cluster, batch, at))


# %% wrong: dp need not divide the batch, m by // | wrong | says: `dp` must divide `batch`
def plan_a_run(model, cluster, batch):
    def allowed(dp, tp, pp):
        return cluster["gpus_per_host"] % tp == 0 and model["layers"] % pp == 0

    return planned(model, cluster, batch, allowed)


# %% wrong: dp need not divide the batch, m by / | wrong | says: `dp` must divide `batch`
def plan_a_run(model, cluster, batch):
    def allowed(dp, tp, pp):
        return cluster["gpus_per_host"] % tp == 0 and model["layers"] % pp == 0

    return planned(model, cluster, batch, allowed, lambda batch, dp: batch / dp)


# %% wrong: no more replicas than samples, but dp need not divide the batch | wrong | says: `dp` must divide `batch`
def plan_a_run(model, cluster, batch):
    def allowed(dp, tp, pp):
        fits = cluster["gpus_per_host"] % tp == 0 and model["layers"] % pp == 0
        return fits and dp <= batch

    return planned(model, cluster, batch, allowed)


# %% wrong: tp need not divide the host | wrong | says: `tp` must divide
def plan_a_run(model, cluster, batch):
    def allowed(dp, tp, pp):
        return model["layers"] % pp == 0 and batch % dp == 0

    return planned(model, cluster, batch, allowed)


# %% wrong: pp need not divide the layers | wrong | says: `pp` must divide `layers`
def plan_a_run(model, cluster, batch):
    def allowed(dp, tp, pp):
        return cluster["gpus_per_host"] % tp == 0 and batch % dp == 0

    return planned(model, cluster, batch, allowed)


# %% wrong: kilobytes taken for bytes, so nothing fits | wrong | says: no layout passed your conditions
def plan_a_run(model, cluster, batch):
    for at in candidates(model, cluster, batch):
        if held(model, cluster, batch, at) * 1000 <= cluster["memory"]:
            return at, took(model, cluster, batch, at), held(model, cluster, batch, at)
