from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

from torch.func import functional_call


# %% right: a pool, clones, functional_call
def scatter_replicate_gather(module, x, workers):
    chunks = x.chunk(workers)
    replicas = [deepcopy(module) for _ in chunks]
    copies = [{n: p.clone() for n, p in module.named_parameters()} for _ in chunks]

    def run(replica, parameters, chunk):
        return functional_call(replica, parameters, (chunk,))

    with ThreadPoolExecutor(len(chunks)) as pool:
        return torch.cat(list(pool.map(run, replicas, copies, chunks)))


# %% right: threads by hand, results by place
import threading


def replicate(module):
    copy = deepcopy(module)
    parameters = {name: p * 1 for name, p in module.named_parameters()}
    return lambda part: functional_call(copy, parameters, (part,))


def scatter_replicate_gather(module, x, workers):
    parts = torch.chunk(x, workers, dim=0)
    results = {}

    def work(place, replica, part):
        results[place] = replica(part)

    threads = [
        threading.Thread(target=work, args=(k, replicate(module), part))
        for k, part in enumerate(parts)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return torch.cat([results[k] for k in sorted(results)])


# %% right: the module itself is the first replica, in the calling thread
def scatter_replicate_gather(module, x, workers):
    first, *others = x.chunk(workers)
    pool = ThreadPoolExecutor(workers)
    futures = []
    for chunk in others:
        parameters = {name: p.clone() for name, p in module.named_parameters()}
        futures.append(pool.submit(functional_call, deepcopy(module), parameters, (chunk,)))
    outputs = [module(first)] + [future.result() for future in futures]
    pool.shutdown()
    return torch.vstack(outputs)


# %% right: copies whose gradients are handed back by hooks
def scatter_replicate_gather(module, x, workers):
    def hand_back(own):
        def hook(copied):
            own.grad = copied.grad.clone() if own.grad is None else own.grad + copied.grad

        return hook

    chunks, replicas = x.chunk(workers), []
    for _ in chunks:
        replica = deepcopy(module)
        for own, copied in zip(module.parameters(), replica.parameters()):
            if own.requires_grad:
                copied.register_post_accumulate_grad_hook(hand_back(own))
        replicas.append(replica)
    with ThreadPoolExecutor(workers) as pool:
        return torch.cat(list(pool.map(lambda r, c: r(c), replicas, chunks)))


# %% wrong: one replica after the other | wrong | says: did not run at the same time
def scatter_replicate_gather(module, x, workers):
    outputs = []
    for chunk in x.chunk(workers):
        parameters = {n: p.clone() for n, p in module.named_parameters()}
        outputs.append(functional_call(deepcopy(module), parameters, (chunk,)))
    return torch.cat(outputs)


# %% wrong: waits for each thread as soon as it has started | wrong | says: only then wait for the first
def scatter_replicate_gather(module, x, workers):
    outputs = []
    with ThreadPoolExecutor(workers) as pool:
        for chunk in x.chunk(workers):
            parameters = {n: p.clone() for n, p in module.named_parameters()}
            future = pool.submit(functional_call, deepcopy(module), parameters, (chunk,))
            outputs.append(future.result())
    return torch.cat(outputs)


# %% wrong: copies without a link to the module | wrong | says: no gradient: it stays in the copies
def scatter_replicate_gather(module, x, workers):
    chunks = x.chunk(workers)
    replicas = [deepcopy(module) for _ in chunks]
    with ThreadPoolExecutor(workers) as pool:
        return torch.cat(list(pool.map(lambda r, c: r(c), replicas, chunks)))


# %% wrong: all threads in one module | wrong | says: same module object
def scatter_replicate_gather(module, x, workers):
    with ThreadPoolExecutor(workers) as pool:
        return torch.cat(list(pool.map(module, x.chunk(workers))))


# %% wrong: replicas with the module's own memory | wrong | says: `clone\(\)` every parameter
def scatter_replicate_gather(module, x, workers):
    parameters = dict(module.named_parameters())

    def run(chunk):
        return functional_call(deepcopy(module), parameters, (chunk,))

    with ThreadPoolExecutor(workers) as pool:
        return torch.cat(list(pool.map(run, x.chunk(workers))))


# %% wrong: one copy of the parameters for all | wrong | says: each of them needs a copy of its own
def scatter_replicate_gather(module, x, workers):
    parameters = {n: p.clone() for n, p in module.named_parameters()}

    def run(chunk):
        return functional_call(deepcopy(module), parameters, (chunk,))

    with ThreadPoolExecutor(workers) as pool:
        return torch.cat(list(pool.map(run, x.chunk(workers))))


# %% wrong: gathers in the order in which threads end | wrong | says: gather in the order of the chunks
def scatter_replicate_gather(module, x, workers):
    from concurrent.futures import as_completed

    with ThreadPoolExecutor(workers) as pool:
        futures = []
        for chunk in x.chunk(workers):
            parameters = {n: p.clone() for n, p in module.named_parameters()}
            futures.append(pool.submit(functional_call, deepcopy(module), parameters, (chunk,)))
        return torch.cat([future.result() for future in as_completed(futures)])


# %% wrong: detached replicas | wrong | says: no graph
def scatter_replicate_gather(module, x, workers):
    chunks = x.chunk(workers)

    def run(chunk):
        with torch.no_grad():
            return deepcopy(module)(chunk)

    with ThreadPoolExecutor(workers) as pool:
        return torch.cat(list(pool.map(run, chunks)))


# %% wrong: detached copies of the parameters | wrong | says: no graph
def scatter_replicate_gather(module, x, workers):
    def run(chunk):
        parameters = {n: p.detach().clone() for n, p in module.named_parameters()}
        return functional_call(deepcopy(module), parameters, (chunk,))

    with ThreadPoolExecutor(workers) as pool:
        return torch.cat(list(pool.map(run, x.chunk(workers))))


# %% wrong: every replica gets all rows | wrong | says: the forwards got .* rows; `x.chunk\(workers\)` gives
def scatter_replicate_gather(module, x, workers):
    def run(_):
        parameters = {n: p.clone() for n, p in module.named_parameters()}
        return functional_call(deepcopy(module), parameters, (x,))

    with ThreadPoolExecutor(workers) as pool:
        return sum(pool.map(run, range(workers))) / workers


# %% wrong: rows that do not divide are left out | wrong | says: the forwards got .* rows; `x.chunk\(workers\)` gives
def scatter_replicate_gather(module, x, workers):
    chunks = x[: len(x) // workers * workers].split(max(1, len(x) // workers))

    def run(chunk):
        parameters = {n: p.clone() for n, p in module.named_parameters()}
        return functional_call(deepcopy(module), parameters, (chunk,))

    with ThreadPoolExecutor(workers) as pool:
        return torch.cat(list(pool.map(run, chunks)))


# %% wrong: torch's own | wrong | says: All rows went to one module
def scatter_replicate_gather(module, x, workers):
    return torch.nn.DataParallel(module)(x)


# %% wrong: nothing is gathered | wrong | says: concatenate its parts
def scatter_replicate_gather(module, x, workers):
    def run(chunk):
        parameters = {n: p.clone() for n, p in module.named_parameters()}
        return functional_call(deepcopy(module), parameters, (chunk,))

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(run, x.chunk(workers)))


# %% wrong: the mean of the chunks' outputs | wrong | says: along the rows
def scatter_replicate_gather(module, x, workers):
    def run(chunk):
        parameters = {n: p.clone() for n, p in module.named_parameters()}
        return functional_call(deepcopy(module), parameters, (chunk,))

    with ThreadPoolExecutor(workers) as pool:
        return torch.stack(list(pool.map(run, x.chunk(workers)))).mean(0)
