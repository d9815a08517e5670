# %% right: in one formula
def step_traffic(layers, ranks, reshard, param_bytes, reduce_bytes, microbatches, wait):
    n = sum(layers)
    again = 0 if reshard is False else n // ranks if reshard is True else n // reshard
    gathered = microbatches * (n // ranks + again) * param_bytes
    scattered = (1 if wait else microbatches) * n * reduce_bytes
    held = n * reduce_bytes if wait else n // ranks * 4
    return gathered, scattered, held


# %% right: layer by layer, a list
def step_traffic(layers, ranks, reshard, param_bytes, reduce_bytes, microbatches, wait):
    gathered = scattered = held = 0
    for n in layers:
        for i in range(microbatches):
            gathered += n // ranks * param_bytes
            if reshard is not False:
                gathered += n // (ranks if reshard is True else reshard) * param_bytes
            if i == microbatches - 1 or not wait:
                scattered += n * reduce_bytes
        held += n * reduce_bytes if wait else 4 * n // ranks
    return [gathered, scattered, held]


# %% wrong: gathers hand in whole layers | wrong | says: A rank hands its shard
def step_traffic(layers, ranks, reshard, param_bytes, reduce_bytes, microbatches, wait):
    n = sum(layers)
    again = 0 if reshard is False else n
    return (
        microbatches * (n + again) * param_bytes,
        (1 if wait else microbatches) * n * reduce_bytes,
        n * reduce_bytes if wait else n // ranks * 4,
    )


# %% wrong: waiting spares the gathers as well | wrong | says: Weights are gathered for every microbatch
def step_traffic(layers, ranks, reshard, param_bytes, reduce_bytes, microbatches, wait):
    n, times = sum(layers), 1 if wait else microbatches
    again = 0 if reshard is False else n // ranks if reshard is True else n // reshard
    held = n * reduce_bytes if wait else n // ranks * 4
    return times * (n // ranks + again) * param_bytes, times * n * reduce_bytes, held


# %% wrong: True is an int | wrong | says: are ints to Python
def step_traffic(layers, ranks, reshard, param_bytes, reduce_bytes, microbatches, wait):
    n = sum(layers)
    again = n // reshard if reshard else 0
    return (
        microbatches * (n // ranks + again) * param_bytes,
        (1 if wait else microbatches) * n * reduce_bytes,
        n * reduce_bytes if wait else n // ranks * 4,
    )


# %% wrong: a number is as good as True | wrong | says: a rank keeps a larger part after forward
def step_traffic(layers, ranks, reshard, param_bytes, reduce_bytes, microbatches, wait):
    n = sum(layers)
    again = n // ranks if reshard else 0
    return (
        microbatches * (n // ranks + again) * param_bytes,
        (1 if wait else microbatches) * n * reduce_bytes,
        n * reduce_bytes if wait else n // ranks * 4,
    )


# %% wrong: scatters hand in shards | wrong | says: hands whole gradients to a reduce_scatter
def step_traffic(layers, ranks, reshard, param_bytes, reduce_bytes, microbatches, wait):
    n = sum(layers)
    again = 0 if reshard is False else n // ranks if reshard is True else n // reshard
    return (
        microbatches * (n // ranks + again) * param_bytes,
        (1 if wait else microbatches) * n // ranks * reduce_bytes,
        n * reduce_bytes if wait else n // ranks * 4,
    )


# %% wrong: gradients in param_dtype | wrong | says: scattered in reduce_dtype
def step_traffic(layers, ranks, reshard, param_bytes, reduce_bytes, microbatches, wait):
    n = sum(layers)
    again = 0 if reshard is False else n // ranks if reshard is True else n // reshard
    return (
        microbatches * (n // ranks + again) * param_bytes,
        (1 if wait else microbatches) * n * param_bytes,
        n * param_bytes if wait else n // ranks * 4,
    )


# %% wrong: each microbatch scatters whatever wait says | wrong | says: With `wait` only the last
def step_traffic(layers, ranks, reshard, param_bytes, reduce_bytes, microbatches, wait):
    n = sum(layers)
    again = 0 if reshard is False else n // ranks if reshard is True else n // reshard
    return (
        microbatches * (n // ranks + again) * param_bytes,
        microbatches * n * reduce_bytes,
        n * reduce_bytes if wait else n // ranks * 4,
    )


# %% wrong: the shard is kept in reduce_dtype | wrong | says: keeps the shard only, and adds it up in
def step_traffic(layers, ranks, reshard, param_bytes, reduce_bytes, microbatches, wait):
    n = sum(layers)
    again = 0 if reshard is False else n // ranks if reshard is True else n // reshard
    return (
        microbatches * (n // ranks + again) * param_bytes,
        (1 if wait else microbatches) * n * reduce_bytes,
        n * reduce_bytes if wait else n // ranks * reduce_bytes,
    )


# %% wrong: who waits keeps a shard | wrong | says: Who waits keeps whole gradients
def step_traffic(layers, ranks, reshard, param_bytes, reduce_bytes, microbatches, wait):
    n = sum(layers)
    again = 0 if reshard is False else n // ranks if reshard is True else n // reshard
    return (
        microbatches * (n // ranks + again) * param_bytes,
        (1 if wait else microbatches) * n * reduce_bytes,
        n // ranks * 4,
    )


# %% wrong: two numbers | wrong | says: Return three whole numbers
def step_traffic(layers, ranks, reshard, param_bytes, reduce_bytes, microbatches, wait):
    return sum(layers) * param_bytes, sum(layers) * reduce_bytes
