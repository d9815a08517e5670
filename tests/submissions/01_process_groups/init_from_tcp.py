import os
import socket
import tempfile
import time
from pathlib import Path

from helpers import free_port


# %% right: the port travels in a FileStore
def init_from_tcp(rank, world_size, folder):
    store = dist.FileStore(f"{folder}/port", world_size)
    if rank == 0:
        store.set("port", str(free_port()))
    port = int(store.get("port"))
    dist.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world_size
    )


# %% right: the port travels in a file that appears all at once
def init_from_tcp(rank, world_size, folder):
    announced = Path(folder) / "port.txt"
    if rank == 0:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        draft = announced.with_suffix(".new")
        draft.write_text(str(port))
        draft.rename(announced)
    while not announced.exists():
        time.sleep(0.01)
    address = f"tcp://127.0.0.1:{announced.read_text()}"
    dist.init_process_group("gloo", address, rank=rank, world_size=world_size)


# %% right: rank 0 opens the TCPStore on port 0 and tells which one the system gave
def init_from_tcp(rank, world_size, folder):
    board = dist.FileStore(os.path.join(folder, "board"), world_size)
    if rank == 0:
        store = dist.TCPStore("127.0.0.1", 0, world_size, is_master=True, wait_for_workers=False)
        board.set("port", str(store.port))
    else:
        port = int(board.get("port"))
        store = dist.TCPStore("127.0.0.1", port, world_size, wait_for_workers=False)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size)


# %% right: rank and size in the address
def init_from_tcp(rank, world_size, folder):
    store = dist.FileStore(f"{folder}/port", world_size)
    if rank == 0:
        store.set("port", str(free_port()))
    port = store.get("port").decode()
    url = f"tcp://localhost:{port}?rank={rank}&world_size={world_size}"
    dist.init_process_group("gloo", init_method=url)


# %% wrong: the port is left in a folder that only rank 0 has | crashed | says: FileNotFoundError
def init_from_tcp(rank, world_size, folder):
    path = Path(tempfile.mkdtemp()) / "port"
    if rank == 0:
        path.write_text(str(free_port()))
    dist.init_process_group(
        "gloo",
        init_method=f"tcp://127.0.0.1:{path.read_text()}",
        rank=rank,
        world_size=world_size,
    )


# %% wrong: rank and world size left out | crashed | says: rank parameter missing
def init_from_tcp(rank, world_size, folder):
    store = dist.FileStore(f"{folder}/port", world_size)
    if rank == 0:
        store.set("port", str(free_port()))
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{int(store.get('port'))}")


# %% right: a socket of its own, the port in a store that add and wait share
import os
import zlib

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


# %% wrong: a fixed port | crashed | says: in use already
def init_from_tcp(rank, world_size, folder):
    dist.init_process_group(
        "gloo", init_method="tcp://127.0.0.1:29500", rank=rank, world_size=world_size
    )


# %% wrong: every rank asks for a port of its own | timed out | says: different addresses
def init_from_tcp(rank, world_size, folder):
    dist.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{free_port()}", rank=rank, world_size=world_size
    )


# %% wrong: meets by the file itself | wrong | says: meet at tcp://
def init_from_tcp(rank, world_size, folder):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=world_size
    )


# %% wrong: finds a port and starts nothing | wrong | says: There is no process group
def init_from_tcp(rank, world_size, folder):
    store = dist.FileStore(f"{folder}/port", world_size)
    if rank == 0:
        store.set("port", str(free_port()))
    return int(store.get("port"))


# %% wrong: counts from one | timed out | says: not below the world size
def init_from_tcp(rank, world_size, folder):
    store = dist.FileStore(f"{folder}/port", world_size)
    if rank == 0:
        store.set("port", str(free_port()))
    port = int(store.get("port"))
    dist.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank + 1, world_size=world_size
    )


# %% wrong: the server only | timed out | says: Not all ranks reach
def init_from_tcp(rank, world_size, folder):
    if rank == 0:
        dist.init_process_group(
            "gloo", init_method=f"tcp://127.0.0.1:{free_port()}", rank=0, world_size=world_size
        )


# %% wrong: a port made of the folder's name | wrong | says: free_port
import os
import zlib


def init_from_tcp(rank, world_size, folder):
    port = 20000 + zlib.crc32(folder.encode()) % 10000
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=world_size)


# %% wrong: a port made of the folder's number on the disk | wrong | says: free_port
import os
import zlib


def init_from_tcp(rank, world_size, folder):
    port = 20000 + os.stat(folder).st_ino % 10000
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=world_size)


# %% wrong: the port in a store of one process | timed out | says: still waits at an earlier line
def init_from_tcp(rank, world_size, folder):
    store = dist.HashStore()
    if rank == 0:
        store.set("port", str(free_port()))
    port = int(store.get("port"))
    dist.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world_size
    )
