import os
import socket
import tempfile
import time
from pathlib import Path

from helpers import free_port


# %% a fixed port | crashed
# Two jobs on one machine want the same port. A port that is written down is free only until somebody else
# writes down the same: ask the system for a free one.
def init_from_tcp(rank, world_size, folder):
    dist.init_process_group(
        "gloo", init_method="tcp://127.0.0.1:29500", rank=rank, world_size=world_size
    )


# %% every rank asks for a port of its own | timed out
# Each rank waits at a place of its own: they must agree on one.
def init_from_tcp(rank, world_size, folder):
    dist.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{free_port()}", rank=rank, world_size=world_size
    )


# %% meets by the file itself
# Use the file to tell the others the port, and meet by tcp:// there.
def init_from_tcp(rank, world_size, folder):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=world_size
    )


# %% finds a port and starts nothing
# There is no group when the function has returned: call `dist.init_process_group`, and leave it open for
# whoever called you.
def init_from_tcp(rank, world_size, folder):
    store = dist.FileStore(f"{folder}/port", world_size)
    if rank == 0:
        store.set("port", str(free_port()))
    return int(store.get("port"))


# %% counts from one | timed out
# A rank is one of 0, 1, ...: ranks are counted from 0.
def init_from_tcp(rank, world_size, folder):
    store = dist.FileStore(f"{folder}/port", world_size)
    if rank == 0:
        store.set("port", str(free_port()))
    port = int(store.get("port"))
    dist.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank + 1, world_size=world_size
    )


# %% the server only | timed out
# Every rank must call init_process_group: here not all do.
def init_from_tcp(rank, world_size, folder):
    if rank == 0:
        dist.init_process_group(
            "gloo", init_method=f"tcp://127.0.0.1:{free_port()}", rank=0, world_size=world_size
        )


# %% a port made of the folder's owner | crashed
# Two jobs on one machine want the same port. A port that is written down is free only until somebody else
# writes down the same: ask the system for a free one.
def init_from_tcp(rank, world_size, folder):
    port = 20000 + os.stat(folder).st_uid % 10000
    dist.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world_size
    )


# %% a port made of the folder's name
# A port that nobody has asked for may be taken: let the system choose a free one.
import os
import zlib


def init_from_tcp(rank, world_size, folder):
    port = 20000 + zlib.crc32(folder.encode()) % 10000
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=world_size)


# %% a port made of the folder's number on the disk
# A port that nobody has asked for may be taken: let the system choose a free one.
import os
import zlib


def init_from_tcp(rank, world_size, folder):
    port = 20000 + os.stat(folder).st_ino % 10000
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=world_size)
