# %% wrong: prints it | wrong | says: prints, but returns nothing


# %% wrong: a GPU means NCCL | wrong | says: 'nccl', but 'gloo' is right


# %% right: names that torch takes as well
def pick_backend(gpus, ranks, nccl, device):
    if device == "cpu":
        return "cpu:gloo"
    if not nccl or gpus < ranks:
        return "Gloo"
    return "cuda:nccl" if device == "cuda" else "cuda:nccl,cpu:gloo"


# %% wrong: the tensors' place is not asked for | wrong | says: each device has a backend of its own
def pick_backend(gpus, ranks, nccl, device):
    return "nccl" if nccl and gpus >= ranks else "gloo"
