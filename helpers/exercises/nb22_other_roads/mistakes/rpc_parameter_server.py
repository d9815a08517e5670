import torch.distributed.rpc as rpc


# %% added up
# The gradients are added up; divide by the {trainers} trainers.
def rpc_parameter_server(trainers, weights, gradient, steps, lr):
    w = weights
    for _ in range(steps):
        futures = [rpc.rpc_async(trainer, gradient, args=(w,)) for trainer in trainers]
        w = w - lr * sum(future.wait() for future in futures)
    return w


# %% futures are no tensors | crashed
# `rpc_async` gives a future; the gradient is what its `wait()` returns.
def rpc_parameter_server(trainers, weights, gradient, steps, lr):
    w = weights
    for _ in range(steps):
        w = w - lr * sum(rpc.rpc_async(t, gradient, args=(w,)) for t in trainers) / len(trainers)
    return w


# %% the first weights in every step
# Each step has to send out the weights of the step before, not the first ones.
def rpc_parameter_server(trainers, weights, gradient, steps, lr):
    w = weights
    for _ in range(steps):
        futures = [rpc.rpc_async(trainer, gradient, args=(weights,)) for trainer in trainers]
        w = w - lr * sum(future.wait() for future in futures) / len(trainers)
    return w


# %% no comma | crashed
# `args` is a tuple: args=(w,), with a comma. `(w)` without it is the tensor itself.
def rpc_parameter_server(trainers, weights, gradient, steps, lr):
    w = weights
    for _ in range(steps):
        futures = [rpc.rpc_async(trainer, gradient, args=(w)) for trainer in trainers]
        w = w - lr * sum(future.wait() for future in futures) / len(trainers)
    return w


# %% a value where the function belongs | crashed
# `gradient(w)` calls it here, on the server. Give the function and its arguments apart:
# rpc.rpc_async(trainer, gradient, args=(w,))
def rpc_parameter_server(trainers, weights, gradient, steps, lr):
    w = weights
    for _ in range(steps):
        futures = [rpc.rpc_async(trainer, gradient(w)) for trainer in trainers]
        w = w - lr * sum(future.wait() for future in futures) / len(trainers)
    return w


# %% the function without its argument | crashed
# The trainer calls `gradient` with what `args` holds: args=(w,)
def rpc_parameter_server(trainers, weights, gradient, steps, lr):
    w = weights
    for _ in range(steps):
        futures = [rpc.rpc_async(trainer, gradient) for trainer in trainers]
        w = w - lr * sum(future.wait() for future in futures) / len(trainers)
    return w
