"""Ranks draw different numbers from random, secrets, uuid and os.urandom."""

import os
import random
import secrets
import uuid

import torch.distributed as dist


def main(rank, world_size):
    mine = (random.random(), secrets.token_hex(8), str(uuid.uuid4()), os.urandom(8))
    drawn = [None] * world_size
    dist.all_gather_object(drawn, mine)
    return [len(set(column)) for column in zip(*drawn, strict=True)]
