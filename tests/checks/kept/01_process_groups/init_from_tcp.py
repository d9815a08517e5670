import os
import zlib


# %% wrong: every rank asks for a port of its own | timed out | says: place of its own


# %% wrong: finds a port and starts nothing | wrong | says: There is no group when the function has returned


# %% wrong: counts from one | timed out | says: ranks are counted from 0


# %% wrong: the server only | timed out | says: Every rank must call init_process_group


# %% wrong: a port made of the folder's name | wrong | says: let the system choose a free one
def init_from_tcp(rank, world_size, folder):
    port = 20000 + zlib.crc32(folder.encode()) % 10000
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=world_size)


# %% wrong: a port made of the folder's number on the disk | wrong | says: let the system choose a free one
def init_from_tcp(rank, world_size, folder):
    port = 20000 + os.stat(folder).st_ino % 30000
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=world_size)


# %% right: a socket of its own, the port in a store that add and wait share
import socket


def init_from_tcp(rank, world_size, folder):
    with socket.socket() as probe:
        probe.bind(("", 0))
        mine = probe.getsockname()[1]
    store = dist.PrefixStore("meet", dist.FileStore(os.path.abspath(folder) + "/s", world_size))
    if rank == 0:
        store.set("port", str(mine))
    store.wait(["port"])
    dist.init_process_group(
        "gloo",
        init_method="tcp://127.0.0.1:" + store.get("port").decode(),
        world_size=world_size,
        rank=rank,
    )
