import os


# %% right: a comprehension over the names
def read_torchrun_env():
    alone = {
        "rank": ("RANK", 0),
        "local_rank": ("LOCAL_RANK", 0),
        "node": ("GROUP_RANK", 0),
        "world_size": ("WORLD_SIZE", 1),
        "local_world_size": ("LOCAL_WORLD_SIZE", 1),
        "nodes": ("GROUP_WORLD_SIZE", 1),
        "restart": ("TORCHELASTIC_RESTART_COUNT", 0),
    }
    return {key: int(os.environ.get(name, value)) for key, (name, value) in alone.items()}


# %% right: with getenv, entry by entry
def read_torchrun_env():
    def number(name, alone):
        text = os.getenv(name)
        return alone if text is None else int(text)

    return dict(
        rank=number("RANK", 0),
        local_rank=number("LOCAL_RANK", 0),
        node=number("GROUP_RANK", 0),
        world_size=number("WORLD_SIZE", 1),
        local_world_size=number("LOCAL_WORLD_SIZE", 1),
        nodes=number("GROUP_WORLD_SIZE", 1),
        restart=number("TORCHELASTIC_RESTART_COUNT", 0),
    )


# %% right: asks first whether torchrun started it
NAMES = {
    "rank": "RANK",
    "local_rank": "LOCAL_RANK",
    "node": "GROUP_RANK",
    "world_size": "WORLD_SIZE",
    "local_world_size": "LOCAL_WORLD_SIZE",
    "nodes": "GROUP_WORLD_SIZE",
    "restart": "TORCHELASTIC_RESTART_COUNT",
}


def read_torchrun_env():
    if "RANK" not in os.environ:
        ones = {"world_size", "local_world_size", "nodes"}
        return {key: int(key in ones) for key in NAMES}
    return {key: int(os.environ[name]) for key, name in NAMES.items()}


# %% wrong: strings, not numbers | wrong | says: convert each to an int
def read_torchrun_env():
    e = os.environ
    return {
        "rank": e.get("RANK", 0),
        "local_rank": e.get("LOCAL_RANK", 0),
        "node": e.get("GROUP_RANK", 0),
        "world_size": e.get("WORLD_SIZE", 1),
        "local_world_size": e.get("LOCAL_WORLD_SIZE", 1),
        "nodes": e.get("GROUP_WORLD_SIZE", 1),
        "restart": e.get("TORCHELASTIC_RESTART_COUNT", 0),
    }


# %% wrong: only under torchrun | crashed | says: plain `python`.*os.environ.get
def read_torchrun_env():
    e = os.environ
    return {
        "rank": int(e["RANK"]),
        "local_rank": int(e["LOCAL_RANK"]),
        "node": int(e["GROUP_RANK"]),
        "world_size": int(e["WORLD_SIZE"]),
        "local_world_size": int(e["LOCAL_WORLD_SIZE"]),
        "nodes": int(e["GROUP_WORLD_SIZE"]),
        "restart": int(e["TORCHELASTIC_RESTART_COUNT"]),
    }


# %% wrong: the local rank is the rank | wrong | says: `local_rank` must come from LOCAL_RANK
def read_torchrun_env():
    number = lambda name, alone: int(os.environ.get(name, alone))
    return {
        "rank": number("RANK", 0),
        "local_rank": number("RANK", 0),
        "node": number("GROUP_RANK", 0),
        "world_size": number("WORLD_SIZE", 1),
        "local_world_size": number("LOCAL_WORLD_SIZE", 1),
        "nodes": number("GROUP_WORLD_SIZE", 1),
        "restart": number("TORCHELASTIC_RESTART_COUNT", 0),
    }


# %% wrong: the node computed, as if all nodes were alike | wrong | says: \['nodes'\]: \d is not
def read_torchrun_env():
    number = lambda name, alone: int(os.environ.get(name, alone))
    rank, local_size = number("RANK", 0), number("LOCAL_WORLD_SIZE", 1)
    return {
        "rank": rank,
        "local_rank": rank % local_size,
        "node": rank // local_size,
        "world_size": number("WORLD_SIZE", 1),
        "local_world_size": local_size,
        "nodes": number("WORLD_SIZE", 1) // local_size,
        "restart": number("TORCHELASTIC_RESTART_COUNT", 0),
    }


# %% wrong: how many restarts there may be | wrong | says: `restart` must come from TORCHELASTIC_RESTART_COUNT
def read_torchrun_env():
    number = lambda name, alone: int(os.environ.get(name, alone))
    return {
        "rank": number("RANK", 0),
        "local_rank": number("LOCAL_RANK", 0),
        "node": number("GROUP_RANK", 0),
        "world_size": number("WORLD_SIZE", 1),
        "local_world_size": number("LOCAL_WORLD_SIZE", 1),
        "nodes": number("GROUP_WORLD_SIZE", 1),
        "restart": number("TORCHELASTIC_MAX_RESTARTS", 0),
    }


# %% wrong: asks a group that nobody has joined | crashed | says: process group has not been initialized
def read_torchrun_env():
    return {"rank": dist.get_rank(), "world_size": dist.get_world_size()}


# %% wrong: alone it is rank 0 of 0 | wrong | says: a process is alone: rank 0 of 1
def read_torchrun_env():
    names = {
        "rank": "RANK",
        "local_rank": "LOCAL_RANK",
        "node": "GROUP_RANK",
        "world_size": "WORLD_SIZE",
        "local_world_size": "LOCAL_WORLD_SIZE",
        "nodes": "GROUP_WORLD_SIZE",
        "restart": "TORCHELASTIC_RESTART_COUNT",
    }
    return {key: int(os.environ.get(name, 0)) for key, name in names.items()}


# %% wrong: printed, not returned | wrong | says: returns nothing
def read_torchrun_env():
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
        print(name, os.environ.get(name))


# %% right: asks torch whether it was launched
import os


def read_torchrun_env():
    if not dist.is_torchelastic_launched():
        alone = ("rank", "local_rank", "node", "restart")
        return {
            **dict.fromkeys(alone, 0),
            **dict.fromkeys(("world_size", "local_world_size", "nodes"), 1),
        }
    names = {
        "rank": "RANK",
        "local_rank": "LOCAL_RANK",
        "node": "GROUP_RANK",
        "world_size": "WORLD_SIZE",
        "local_world_size": "LOCAL_WORLD_SIZE",
        "nodes": "GROUP_WORLD_SIZE",
        "restart": "TORCHELASTIC_RESTART_COUNT",
    }
    return {key: int(os.environ[name]) for key, name in names.items()}
