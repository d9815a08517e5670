from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

from torch.func import functional_call


# %% goes through the workers, of which there are more than chunks | crashed
# `x.chunk({workers})` of {rows} rows returns {chunks} chunks: it can return fewer than were asked for. Loop
# over the chunks, not over `range(workers)`.
def scatter_replicate_gather(module, x, workers):
    chunks = x.chunk(workers)
    with ThreadPoolExecutor(workers) as pool:
        futures = []
        for k in range(workers):
            parameters = {n: p.clone() for n, p in module.named_parameters()}
            futures.append(pool.submit(functional_call, deepcopy(module), parameters, (chunks[k],)))
        return torch.cat([future.result() for future in futures])
