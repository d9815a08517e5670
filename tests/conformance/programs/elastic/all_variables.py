"""The variables that torchrun's workers read: numbers of restarts, groups and roles."""

import os

LIKE = "torchrun"
INIT = False


def main(rank, world_size):
    numbers = ["GROUP_RANK", "ROLE_RANK", "ROLE_WORLD_SIZE", "GROUP_WORLD_SIZE"]
    numbers += ["TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS"]
    found = {name: os.environ.get(name) for name in numbers}
    return found, "TORCHELASTIC_RUN_ID" in os.environ
