import hashlib


# %% wrong: one file for all jobs | wrong | says: Two jobs met in one file


# %% wrong: a file for each rank | deadlocked | says: Each rank waits at a place of its own


# %% wrong: gives the address back | wrong | says: There is no group when the function has returned


# %% wrong: everybody is rank 0 | deadlocked | says: start as one and the same rank


# %% right: a digest names the file
def init_from_file(rank, world_size, folder, job_id):
    name = hashlib.sha256(job_id.encode()).hexdigest()
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/{name}", rank=rank, world_size=world_size
    )


# %% wrong: the hash of the id, which differs from process to process | deadlocked | says: Each rank waits at a place of its own
def init_from_file(rank, world_size, folder, job_id):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/{hash(job_id)}", rank=rank, world_size=world_size
    )


# %% wrong: letters in any order | wrong | says: Two jobs met in one file
def init_from_file(rank, world_size, folder, job_id):
    name = sum(map(ord, job_id))
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/{name}", rank=rank, world_size=world_size
    )


# %% wrong: the first letters only | wrong | says: Two jobs met in one file
def init_from_file(rank, world_size, folder, job_id):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/{job_id[:12]}", rank=rank, world_size=world_size
    )


# %% wrong: the last letters only | wrong | says: Two jobs met in one file
def init_from_file(rank, world_size, folder, job_id):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/{job_id[-6:]}", rank=rank, world_size=world_size
    )


# %% wrong: all in small letters | wrong | says: Two jobs met in one file
def init_from_file(rank, world_size, folder, job_id):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/{job_id.lower()}", rank=rank, world_size=world_size
    )
