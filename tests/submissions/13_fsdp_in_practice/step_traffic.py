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
