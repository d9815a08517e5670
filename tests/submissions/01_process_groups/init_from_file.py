import tempfile
from pathlib import Path


# %% right: the job's id names the file
def init_from_file(rank, world_size, folder, job_id):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/{job_id}", rank=rank, world_size=world_size
    )


# %% right: pathlib makes the address
def init_from_file(rank, world_size, folder, job_id):
    address = (Path(folder).resolve() / f"rendezvous-{job_id}.store").as_uri()
    dist.init_process_group(backend="gloo", init_method=address, world_size=world_size, rank=rank)


# %% right: the FileStore itself, in a subfolder
def init_from_file(rank, world_size, folder, job_id):
    place = Path(folder, job_id)
    place.mkdir(exist_ok=True)
    store = dist.FileStore(str(place / "store"), world_size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size)
    return dist.get_rank()


# %% wrong: this machine's temp folder | wrong | says: other machines may not see it
def init_from_file(rank, world_size, folder, job_id):
    path = f"{tempfile.gettempdir()}/{job_id}"
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=world_size)


# %% wrong: two slashes | crashed | says: path missing
def init_from_file(rank, world_size, folder, job_id):
    dist.init_process_group(
        "gloo", init_method=f"file://{job_id}", rank=rank, world_size=world_size
    )


# %% wrong: rank and world size left out | crashed | says: rank parameter missing
def init_from_file(rank, world_size, folder, job_id):
    dist.init_process_group("gloo", init_method=f"file://{folder}/{job_id}")


# %% right: a digest names the file
import hashlib


def init_from_file(rank, world_size, folder, job_id):
    name = hashlib.sha256(job_id.encode()).hexdigest()
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/{name}", rank=rank, world_size=world_size
    )


# %% wrong: one file for all jobs | wrong | says: used the same file
def init_from_file(rank, world_size, folder, job_id):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=world_size
    )


# %% wrong: a file for each rank | deadlocked | says: different addresses
def init_from_file(rank, world_size, folder, job_id):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/{job_id}-{rank}", rank=rank, world_size=world_size
    )


# %% wrong: gives the address back | wrong | says: There is no process group
def init_from_file(rank, world_size, folder, job_id):
    return f"file://{folder}/{job_id}"


# %% wrong: everybody is rank 0 | deadlocked | says: with the same rank
def init_from_file(rank, world_size, folder, job_id):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/{job_id}", rank=0, world_size=world_size
    )


# %% wrong: the hash of the id, which differs from process to process | deadlocked | says: different addresses
import hashlib


def init_from_file(rank, world_size, folder, job_id):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/{hash(job_id)}", rank=rank, world_size=world_size
    )


# %% wrong: letters in any order | wrong | says: used the same file
import hashlib


def init_from_file(rank, world_size, folder, job_id):
    name = sum(map(ord, job_id))
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/{name}", rank=rank, world_size=world_size
    )


# %% wrong: the first letters only | wrong | says: used the same file
import hashlib


def init_from_file(rank, world_size, folder, job_id):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/{job_id[:12]}", rank=rank, world_size=world_size
    )


# %% wrong: the last letters only | wrong | says: used the same file
import hashlib


def init_from_file(rank, world_size, folder, job_id):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/{job_id[-6:]}", rank=rank, world_size=world_size
    )


# %% wrong: all in small letters | wrong | says: used the same file
import hashlib


def init_from_file(rank, world_size, folder, job_id):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/{job_id.lower()}", rank=rank, world_size=world_size
    )
