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


# %% wrong: one file for all jobs | wrong | says: Both jobs met in one file
def init_from_file(rank, world_size, folder, job_id):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=world_size
    )


# %% wrong: a file for each rank | crashed | says: place of its own
def init_from_file(rank, world_size, folder, job_id):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/{job_id}-{rank}", rank=rank, world_size=world_size
    )


# %% wrong: this machine's temp folder | wrong | says: other machines may not see it
def init_from_file(rank, world_size, folder, job_id):
    path = f"{tempfile.gettempdir()}/{job_id}"
    dist.init_process_group(
        "gloo", init_method=f"file://{path}", rank=rank, world_size=world_size
    )


# %% wrong: two slashes | crashed | says: path missing
def init_from_file(rank, world_size, folder, job_id):
    dist.init_process_group(
        "gloo", init_method=f"file://{job_id}", rank=rank, world_size=world_size
    )


# %% wrong: rank and world size left out | crashed | says: rank parameter missing
def init_from_file(rank, world_size, folder, job_id):
    dist.init_process_group("gloo", init_method=f"file://{folder}/{job_id}")


# %% wrong: gives the address back | wrong | says: No rank calls dist.init_process_group
def init_from_file(rank, world_size, folder, job_id):
    return f"file://{folder}/{job_id}"


# %% wrong: ends the group again | wrong | says: leave it open
def init_from_file(rank, world_size, folder, job_id):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/{job_id}", rank=rank, world_size=world_size
    )
    dist.barrier()
    dist.destroy_process_group()


# %% wrong: everybody is rank 0 | crashed | says: all start as rank 0
def init_from_file(rank, world_size, folder, job_id):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/{job_id}", rank=0, world_size=world_size
    )
