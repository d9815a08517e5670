# %% gathers hand in whole layers
# A rank hands its shard, one part of `ranks`, to an all_gather, and gets the whole layer.
def step_traffic(layers, ranks, reshard, param_bytes, reduce_bytes, microbatches, wait):
    n = sum(layers)
    again = 0 if reshard is False else n
    return (
        microbatches * (n + again) * param_bytes,
        (1 if wait else microbatches) * n * reduce_bytes,
        n * reduce_bytes if wait else n // ranks * 4,
    )


# %% waiting spares the gathers as well
# `wait` is about gradients: weights are gathered for every microbatch.
def step_traffic(layers, ranks, reshard, param_bytes, reduce_bytes, microbatches, wait):
    n, times = sum(layers), 1 if wait else microbatches
    again = 0 if reshard is False else n // ranks if reshard is True else n // reshard
    held = n * reduce_bytes if wait else n // ranks * 4
    return times * (n // ranks + again) * param_bytes, times * n * reduce_bytes, held


# %% True is an int
# `True` and `False` are ints in Python: test `reshard is True` and `reshard is False` first.
def step_traffic(layers, ranks, reshard, param_bytes, reduce_bytes, microbatches, wait):
    n = sum(layers)
    again = n // reshard if reshard else 0
    return (
        microbatches * (n // ranks + again) * param_bytes,
        (1 if wait else microbatches) * n * reduce_bytes,
        n * reduce_bytes if wait else n // ranks * 4,
    )


# %% a number is as good as True
# With a number k, a rank keeps one part of k after forward, and hands that part to the second gather.
def step_traffic(layers, ranks, reshard, param_bytes, reduce_bytes, microbatches, wait):
    n = sum(layers)
    again = n // ranks if reshard else 0
    return (
        microbatches * (n // ranks + again) * param_bytes,
        (1 if wait else microbatches) * n * reduce_bytes,
        n * reduce_bytes if wait else n // ranks * 4,
    )


# %% scatters hand in shards
# A rank hands whole gradients to a reduce_scatter, and gets its shard.
def step_traffic(layers, ranks, reshard, param_bytes, reduce_bytes, microbatches, wait):
    n = sum(layers)
    again = 0 if reshard is False else n // ranks if reshard is True else n // reshard
    return (
        microbatches * (n // ranks + again) * param_bytes,
        (1 if wait else microbatches) * n // ranks * reduce_bytes,
        n * reduce_bytes if wait else n // ranks * 4,
    )


# %% gradients in param_dtype
# Gradients are scattered in reduce_dtype.
def step_traffic(layers, ranks, reshard, param_bytes, reduce_bytes, microbatches, wait):
    n = sum(layers)
    again = 0 if reshard is False else n // ranks if reshard is True else n // reshard
    return (
        microbatches * (n // ranks + again) * param_bytes,
        (1 if wait else microbatches) * n * param_bytes,
        n * param_bytes if wait else n // ranks * 4,
    )


# %% each microbatch scatters whatever wait says
# With `wait` only the last microbatch scatters; without it each one does.
def step_traffic(layers, ranks, reshard, param_bytes, reduce_bytes, microbatches, wait):
    n = sum(layers)
    again = 0 if reshard is False else n // ranks if reshard is True else n // reshard
    return (
        microbatches * (n // ranks + again) * param_bytes,
        microbatches * n * reduce_bytes,
        n * reduce_bytes if wait else n // ranks * 4,
    )


# %% the shard is kept in reduce_dtype
# Without `wait` a rank keeps its shard of the gradients in the weights' dtype, float32.
def step_traffic(layers, ranks, reshard, param_bytes, reduce_bytes, microbatches, wait):
    n = sum(layers)
    again = 0 if reshard is False else n // ranks if reshard is True else n // reshard
    return (
        microbatches * (n // ranks + again) * param_bytes,
        (1 if wait else microbatches) * n * reduce_bytes,
        n * reduce_bytes if wait else n // ranks * reduce_bytes,
    )


# %% who waits keeps a shard
# With `wait` a rank keeps whole gradients, in reduce_dtype, until they are scattered.
def step_traffic(layers, ranks, reshard, param_bytes, reduce_bytes, microbatches, wait):
    n = sum(layers)
    again = 0 if reshard is False else n // ranks if reshard is True else n // reshard
    return (
        microbatches * (n // ranks + again) * param_bytes,
        (1 if wait else microbatches) * n * reduce_bytes,
        n // ranks * 4,
    )


# %% two numbers
# Return three integers: gathered, scattered, held.
def step_traffic(layers, ranks, reshard, param_bytes, reduce_bytes, microbatches, wait):
    return sum(layers) * param_bytes, sum(layers) * reduce_bytes
