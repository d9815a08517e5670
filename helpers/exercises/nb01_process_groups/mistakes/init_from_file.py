import tempfile
from pathlib import Path


# %% one file for all jobs
# Two jobs met in one file. That went well only because the first one cleaned up: a job that is killed
# leaves its file, with addresses of processes that are gone.
def init_from_file(rank, world_size, folder, job_id):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=world_size
    )


# %% a file for each rank | deadlocked
# Each rank waits at a place of its own: they must agree on one.
def init_from_file(rank, world_size, folder, job_id):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/{job_id}-{rank}", rank=rank, world_size=world_size
    )


# %% gives the address back
# There is no group when the function has returned: call `dist.init_process_group`, and leave it open for
# whoever called you.
def init_from_file(rank, world_size, folder, job_id):
    return f"file://{folder}/{job_id}"


# %% ends the group again
# There is no group when the function has returned: call `dist.init_process_group`, and leave it open for
# whoever called you.
def init_from_file(rank, world_size, folder, job_id):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/{job_id}", rank=rank, world_size=world_size
    )
    dist.barrier()
    dist.destroy_process_group()


# %% everybody is rank 0 | deadlocked
# Several processes start as one and the same rank. A rank is a process's number in the whole job (RANK),
# a local_rank its number on one machine (LOCAL_RANK).
def init_from_file(rank, world_size, folder, job_id):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/{job_id}", rank=0, world_size=world_size
    )


# %% the hash of the id, which differs from process to process | deadlocked
# Each rank waits at a place of its own: they must agree on one.
import hashlib


def init_from_file(rank, world_size, folder, job_id):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/{hash(job_id)}", rank=rank, world_size=world_size
    )


# %% letters in any order
# Two jobs met in one file. That went well only because the first one cleaned up: a job that is killed
# leaves its file, with addresses of processes that are gone.
import hashlib


def init_from_file(rank, world_size, folder, job_id):
    name = sum(map(ord, job_id))
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/{name}", rank=rank, world_size=world_size
    )


# %% the first letters only
# Two jobs met in one file. That went well only because the first one cleaned up: a job that is killed
# leaves its file, with addresses of processes that are gone.
import hashlib


def init_from_file(rank, world_size, folder, job_id):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/{job_id[:12]}", rank=rank, world_size=world_size
    )


# %% the last letters only
# Two jobs met in one file. That went well only because the first one cleaned up: a job that is killed
# leaves its file, with addresses of processes that are gone.
import hashlib


def init_from_file(rank, world_size, folder, job_id):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/{job_id[-6:]}", rank=rank, world_size=world_size
    )


# %% all in small letters
# Two jobs met in one file. That went well only because the first one cleaned up: a job that is killed
# leaves its file, with addresses of processes that are gone.
import hashlib


def init_from_file(rank, world_size, folder, job_id):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/{job_id.lower()}", rank=rank, world_size=world_size
    )
