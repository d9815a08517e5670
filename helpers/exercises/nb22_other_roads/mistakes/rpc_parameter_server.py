import torch.distributed.rpc as rpc


# %% added up
# The gradients are summed. Divide by the number of trainers, {trainers}, for their mean.
def rpc_parameter_server(trainers, weights, gradient, steps, lr):
    w = weights
    for _ in range(steps):
        futures = [rpc.rpc_async(trainer, gradient, args=(w,)) for trainer in trainers]
        w = w - lr * sum(future.wait() for future in futures)
    return w


# %% futures are no tensors | crashed
# A future is used as a tensor. `rpc_async` returns a future; its `wait()` returns the gradient.
def rpc_parameter_server(trainers, weights, gradient, steps, lr):
    w = weights
    for _ in range(steps):
        w = w - lr * sum(rpc.rpc_async(t, gradient, args=(w,)) for t in trainers) / len(trainers)
    return w


# %% the first weights in every step
# Every step sends the first weights. Send the weights that the last step produced.
def rpc_parameter_server(trainers, weights, gradient, steps, lr):
    w = weights
    for _ in range(steps):
        futures = [rpc.rpc_async(trainer, gradient, args=(weights,)) for trainer in trainers]
        w = w - lr * sum(future.wait() for future in futures) / len(trainers)
    return w


# %% no comma | crashed
# `args` must be a tuple: args=(w,), with a comma. `(w)` is the tensor itself.
def rpc_parameter_server(trainers, weights, gradient, steps, lr):
    w = weights
    for _ in range(steps):
        futures = [rpc.rpc_async(trainer, gradient, args=(w)) for trainer in trainers]
        w = w - lr * sum(future.wait() for future in futures) / len(trainers)
    return w


# %% a value where the function belongs | crashed
# `gradient(w)` runs on the server, before the call is made. Pass the function and its arguments separately:
# rpc.rpc_async(trainer, gradient, args=(w,))
def rpc_parameter_server(trainers, weights, gradient, steps, lr):
    w = weights
    for _ in range(steps):
        futures = [rpc.rpc_async(trainer, gradient(w)) for trainer in trainers]
        w = w - lr * sum(future.wait() for future in futures) / len(trainers)
    return w


# %% the function without its argument | crashed
# The trainer calls `gradient` without arguments. Pass them as a tuple: args=(w,)
def rpc_parameter_server(trainers, weights, gradient, steps, lr):
    w = weights
    for _ in range(steps):
        futures = [rpc.rpc_async(trainer, gradient) for trainer in trainers]
        w = w - lr * sum(future.wait() for future in futures) / len(trainers)
    return w


# %% uphill
# The step has the wrong sign. Subtract lr times the mean gradient.
def rpc_parameter_server(trainers, weights, gradient, steps, lr):
    import torch.distributed.rpc as rpc

    w = weights.clone()
    for _ in range(steps):
        futures = [rpc.rpc_async(name, gradient, args=(w,)) for name in trainers]
        w = w + lr * torch.stack([future.wait() for future in futures]).mean(0)
    return w
