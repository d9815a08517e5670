import torch.distributed.rpc as rpc


# %% right: futures in a list
def rpc_parameter_server(trainers, weights, gradient, steps, lr):
    w = weights
    for _ in range(steps):
        futures = [rpc.rpc_async(trainer, gradient, args=(w,)) for trainer in trainers]
        w = w - lr * sum(future.wait() for future in futures) / len(trainers)
    return w


# %% right: collect_all, in place on a clone
def rpc_parameter_server(trainers, weights, gradient, steps, lr):
    w = weights.clone()
    for _ in range(steps):
        asked = [rpc.rpc_async(to=name, func=gradient, kwargs={"weights": w}) for name in trainers]
        done = torch.futures.collect_all(asked).wait()
        w -= lr * torch.stack([future.value() for future in done]).mean(0)
    return w


# %% right: remote references
def rpc_parameter_server(trainers, weights, gradient, steps, lr):
    for _ in range(steps):
        there = [rpc.remote(trainer, gradient, (weights,)) for trainer in trainers]
        mean = torch.stack([reference.to_here() for reference in there]).mean(dim=0)
        weights = weights - lr * mean
    return weights


# %% right: threads, each with a call that waits
def rpc_parameter_server(trainers, weights, gradient, steps, lr):
    from concurrent.futures import ThreadPoolExecutor

    w = weights
    with ThreadPoolExecutor(len(trainers)) as pool:
        for _ in range(steps):
            ask = lambda trainer: rpc.rpc_sync(trainer, gradient, args=(w,))
            w = w - lr * torch.stack(list(pool.map(ask, trainers))).mean(0)
    return w


# %% right: each answer goes into w in place, once all are there
def rpc_parameter_server(trainers, weights, gradient, steps, lr):
    w = weights.clone()
    for _ in range(steps):
        futures = [rpc.rpc_async(trainer, gradient, args=(w,)) for trainer in trainers]
        for mine in torch.futures.wait_all(futures):
            w -= lr * mine / len(trainers)
    return w


# %% wrong: one after another | wrong | says: one trainer works while the others wait
def rpc_parameter_server(trainers, weights, gradient, steps, lr):
    w = weights
    for _ in range(steps):
        total = sum(rpc.rpc_sync(trainer, gradient, args=(w,)) for trainer in trainers)
        w = w - lr * total / len(trainers)
    return w


# %% wrong: asynchronous, but waits at once | wrong | says: only then wait for them
def rpc_parameter_server(trainers, weights, gradient, steps, lr):
    w = weights
    for _ in range(steps):
        total = 0
        for trainer in trainers:
            total = total + rpc.rpc_async(trainer, gradient, args=(w,)).wait()
        w = w - lr * total / len(trainers)
    return w


# %% wrong: the gradient is called here | wrong | says: called on the server itself
def rpc_parameter_server(trainers, weights, gradient, steps, lr):
    w = weights
    for _ in range(steps):
        w = w - lr * sum(gradient(w) for _ in trainers) / len(trainers)
    return w


# %% wrong: here, by its result given away | wrong | says: called on the server itself
def rpc_parameter_server(trainers, weights, gradient, steps, lr):
    w = weights
    for _ in range(steps):
        futures = [rpc.rpc_async(t, torch.clone, args=(gradient(w),)) for t in trainers]
        w = w - lr * sum(f.wait() for f in futures) / len(trainers)
    return w


# %% wrong: in place | wrong | says: `weights` itself was changed
def rpc_parameter_server(trainers, weights, gradient, steps, lr):
    for _ in range(steps):
        futures = [rpc.rpc_async(trainer, gradient, args=(weights,)) for trainer in trainers]
        weights -= lr * sum(future.wait() for future in futures) / len(trainers)
    return weights


# %% wrong: one step only | wrong | says: was asked 1 time; once in each of the 3 steps
def rpc_parameter_server(trainers, weights, gradient, steps, lr):
    futures = [rpc.rpc_async(trainer, gradient, args=(weights,)) for trainer in trainers]
    return weights - lr * sum(future.wait() for future in futures) / len(trainers)


# %% wrong: returns nothing | wrong | says: nothing is returned
def rpc_parameter_server(trainers, weights, gradient, steps, lr):
    w = weights
    for _ in range(steps):
        futures = [rpc.rpc_async(trainer, gradient, args=(w,)) for trainer in trainers]
        w = w - lr * sum(future.wait() for future in futures) / len(trainers)
    print(w)


# %% wrong: starts RPC itself | timed out | says: RPC is up already
def rpc_parameter_server(trainers, weights, gradient, steps, lr):
    rpc.init_rpc("server", rank=0, world_size=len(trainers) + 1)
    return weights


# %% wrong: in place while a call is in flight | wrong | says: `rpc_async` makes no copy
def rpc_parameter_server(trainers, weights, gradient, steps, lr):
    w = weights.clone()
    for _ in range(steps):
        futures = [rpc.rpc_async(trainer, gradient, args=(w,)) for trainer in trainers]
        for future in futures:
            w -= lr * future.wait() / len(trainers)
    return w


# %% wrong: each trainer at weights that have moved | wrong | says: were asked at different weights
def rpc_parameter_server(trainers, weights, gradient, steps, lr):
    w = weights
    for _ in range(steps):
        for trainer in trainers:
            w = w - lr * rpc.rpc_sync(trainer, gradient, args=(w,)) / len(trainers)
    return w
