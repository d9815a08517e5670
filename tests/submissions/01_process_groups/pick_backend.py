# %% right: one condition for NCCL
def pick_backend(gpus, ranks, nccl, device):
    usable = nccl and gpus >= ranks
    if device == "cpu" or not usable:
        return "gloo"
    return "nccl" if device == "cuda" else "cpu:gloo,cuda:nccl"


# %% right: a table, the other order of parts
def pick_backend(gpus, ranks, nccl, device):
    gloo_only = {"cpu": "gloo", "cuda": "gloo", "both": "gloo"}
    with_nccl = {"cpu": "gloo", "cuda": "nccl", "both": "cuda:nccl,cpu:gloo"}
    return (with_nccl if nccl and ranks <= gpus else gloo_only)[device]


# %% right: torch's own names
def pick_backend(gpus, ranks, nccl, device):
    match device:
        case "cuda" if nccl and not gpus < ranks:
            return dist.Backend.NCCL
        case "both" if nccl and not gpus < ranks:
            return "cpu:gloo,cuda:nccl"
    return dist.Backend.GLOO


# %% wrong: a GPU means NCCL | wrong | says: 'nccl', but 'gloo' is right
def pick_backend(gpus, ranks, nccl, device):
    return "nccl" if gpus else "gloo"


# %% wrong: one GPU is enough for all ranks | wrong | says: refuses two ranks on one
def pick_backend(gpus, ranks, nccl, device):
    if device == "cpu" or not nccl or gpus == 0:
        return "gloo"
    return "nccl" if device == "cuda" else "cpu:gloo,cuda:nccl"


# %% wrong: one GPU more than ranks is asked for | wrong | says: every rank has a GPU of its own
def pick_backend(gpus, ranks, nccl, device):
    if device == "cpu" or not nccl or gpus <= ranks:
        return "gloo"
    return "nccl" if device == "cuda" else "cpu:gloo,cuda:nccl"


# %% wrong: does not ask whether NCCL is there | wrong | says: built without NCCL
def pick_backend(gpus, ranks, nccl, device):
    if device == "cpu" or gpus < ranks:
        return "gloo"
    return "nccl" if device == "cuda" else "cpu:gloo,cuda:nccl"


# %% wrong: both devices are given to NCCL alone | wrong | says: as device:backend
def pick_backend(gpus, ranks, nccl, device):
    return "gloo" if device == "cpu" or not nccl or gpus < ranks else "nccl"


# %% wrong: always gloo, which always works | wrong | says: 'gloo', but '.*nccl' is right
def pick_backend(gpus, ranks, nccl, device):
    return "gloo"


# %% wrong: asks this machine instead of the one described | wrong | says: 'gloo', but '.*nccl' is right
def pick_backend(gpus, ranks, nccl, device):
    return "nccl" if dist.is_nccl_available() and torch.cuda.device_count() >= ranks else "gloo"


# %% wrong: prints it | wrong | says: prints, but returns nothing
def pick_backend(gpus, ranks, nccl, device):
    print("gloo" if device == "cpu" or not nccl or gpus < ranks else "nccl")


# %% wrong: a backend that torch does not have | wrong | says: 'tcp', but 'gloo' is right
def pick_backend(gpus, ranks, nccl, device):
    if device == "cpu" or not nccl or gpus < ranks:
        return "tcp"
    return "nccl" if device == "cuda" else "cpu:gloo,cuda:nccl"


# %% right: names that torch takes as well
def pick_backend(gpus, ranks, nccl, device):
    if device == "cpu":
        return "cpu:gloo"
    if not nccl or gpus < ranks:
        return "Gloo"
    return "cuda:nccl" if device == "cuda" else "cuda:nccl,cpu:gloo"


# %% wrong: the tensors' place is not asked for | wrong | says: each device type gets its backend
def pick_backend(gpus, ranks, nccl, device):
    return "nccl" if nccl and gpus >= ranks else "gloo"
