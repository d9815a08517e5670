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
