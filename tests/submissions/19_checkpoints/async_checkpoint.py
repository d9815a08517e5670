from pathlib import Path

import torch.distributed.checkpoint as dcp


# %% right: a folder for each checkpoint, the earlier future first
def async_checkpoint(state, train_step, steps, every, folder, group):
    whole = [path for path in Path(folder).iterdir() if (path / ".metadata").exists()]
    done, earlier = 0, None
    if whole:
        newest = max(whole, key=lambda path: int(path.name))
        dcp.load(state, checkpoint_id=newest)
        done = int(newest.name)
    for n in range(done, steps):
        train_step(n)
        if (n + 1) % every == 0:
            if earlier is not None:
                earlier.result()
            earlier = dcp.async_save(state, checkpoint_id=f"{folder}/{n + 1}", process_group=group)
    if earlier is not None:
        earlier.result()


# %% wrong: concurrent.futures waits, and nobody asks for the result | wrong | is: a save's error is lost
from concurrent.futures import wait


def async_checkpoint(state, train_step, steps, every, folder, group):
    n = steps
    while n and not Path(folder, f"step{n}", ".metadata").exists():
        n -= 1
    if n:
        dcp.load(
            state, storage_reader=dcp.FileSystemReader(f"{folder}/step{n}"), process_group=group
        )
    futures = []
    while n < steps:
        train_step(n)
        n += 1
        if not n % every:
            wait(futures)
            writer = dcp.FileSystemWriter(f"{folder}/step{n}")
            futures = [dcp.async_save(state, storage_writer=writer, process_group=group)]
    wait(futures)


# %% wrong: saved in the main thread | wrong | is: the main thread writes
def async_checkpoint(state, train_step, steps, every, folder, group):
    whole = [path for path in Path(folder).iterdir() if (path / ".metadata").exists()]
    done = 0
    if whole:
        newest = max(whole, key=lambda path: int(path.name))
        dcp.load(state, checkpoint_id=newest)
        done = int(newest.name)
    for n in range(done, steps):
        train_step(n)
        if (n + 1) % every == 0:
            dcp.save(state, checkpoint_id=f"{folder}/{n + 1}", process_group=group)


# %% wrong: waits for the save at once | wrong | is: waits for the save at once
def async_checkpoint(state, train_step, steps, every, folder, group):
    whole = [path for path in Path(folder).iterdir() if (path / ".metadata").exists()]
    done = 0
    if whole:
        newest = max(whole, key=lambda path: int(path.name))
        dcp.load(state, checkpoint_id=newest)
        done = int(newest.name)
    for n in range(done, steps):
        train_step(n)
        if (n + 1) % every == 0:
            dcp.async_save(state, checkpoint_id=f"{folder}/{n + 1}", process_group=group).result()


# %% wrong: on the group of the training | wrong | is: the group of the training
def async_checkpoint(state, train_step, steps, every, folder, group):
    whole = [path for path in Path(folder).iterdir() if (path / ".metadata").exists()]
    done, earlier = 0, None
    if whole:
        newest = max(whole, key=lambda path: int(path.name))
        dcp.load(state, checkpoint_id=newest)
        done = int(newest.name)
    for n in range(done, steps):
        train_step(n)
        if (n + 1) % every == 0:
            if earlier is not None:
                earlier.result()
            earlier = dcp.async_save(state, checkpoint_id=f"{folder}/{n + 1}")
    if earlier is not None:
        earlier.result()


# %% wrong: never waits for the earlier one | wrong | is: two saves at a time
def async_checkpoint(state, train_step, steps, every, folder, group):
    whole = [path for path in Path(folder).iterdir() if (path / ".metadata").exists()]
    done, last = 0, None
    if whole:
        newest = max(whole, key=lambda path: int(path.name))
        dcp.load(state, checkpoint_id=newest)
        done = int(newest.name)
    for n in range(done, steps):
        train_step(n)
        if (n + 1) % every == 0:
            last = dcp.async_save(state, checkpoint_id=f"{folder}/{n + 1}", process_group=group)
    if last is not None:
        last.result()


# %% wrong: the last one is not waited for | wrong | is: the last save is not waited for
def async_checkpoint(state, train_step, steps, every, folder, group):
    whole = [path for path in Path(folder).iterdir() if (path / ".metadata").exists()]
    done, earlier = 0, None
    if whole:
        newest = max(whole, key=lambda path: int(path.name))
        dcp.load(state, checkpoint_id=newest)
        done = int(newest.name)
    for n in range(done, steps):
        train_step(n)
        if (n + 1) % every == 0:
            if earlier is not None:
                earlier.result()
            earlier = dcp.async_save(state, checkpoint_id=f"{folder}/{n + 1}", process_group=group)


# %% wrong: always the same folder | crashed | is: one folder for all checkpoints, or the newest is removed
def async_checkpoint(state, train_step, steps, every, folder, group):
    newest, done, earlier = Path(folder, "latest"), 0, None
    state["steps"] = torch.tensor(0)
    if newest.exists():
        dcp.load(state, checkpoint_id=newest)
        done = int(state["steps"])
    for n in range(done, steps):
        train_step(n)
        if (n + 1) % every == 0:
            if earlier is not None:
                earlier.result()
            state["steps"] = torch.tensor(n + 1)
            earlier = dcp.async_save(state, checkpoint_id=newest, process_group=group)
    if earlier is not None:
        earlier.result()


# %% wrong: the newest folder, whole or not | crashed | is: an unfinished checkpoint is loaded
def async_checkpoint(state, train_step, steps, every, folder, group):
    made, done, earlier = sorted(int(p.name) for p in Path(folder).iterdir()), 0, None
    if made:
        done = made[-1]
        dcp.load(state, checkpoint_id=f"{folder}/{done}")
    for n in range(done, steps):
        train_step(n)
        if (n + 1) % every == 0:
            if earlier is not None:
                earlier.result()
            earlier = dcp.async_save(state, checkpoint_id=f"{folder}/{n + 1}", process_group=group)
    if earlier is not None:
        earlier.result()


# %% wrong: nothing is loaded | wrong | is: nothing is loaded
def async_checkpoint(state, train_step, steps, every, folder, group):
    earlier = None
    for n in range(steps):
        train_step(n)
        if (n + 1) % every == 0:
            if earlier is not None:
                earlier.result()
            earlier = dcp.async_save(state, checkpoint_id=f"{folder}/{n + 1}", process_group=group)
    if earlier is not None:
        earlier.result()


# %% wrong: only the number of the step is taken over | wrong | is: the weights are not loaded
def async_checkpoint(state, train_step, steps, every, folder, group):
    whole = [int(path.name) for path in Path(folder).iterdir() if (path / ".metadata").exists()]
    earlier = None
    for n in range(max(whole, default=0), steps):
        train_step(n)
        if (n + 1) % every == 0:
            if earlier is not None:
                earlier.result()
            earlier = dcp.async_save(state, checkpoint_id=f"{folder}/{n + 1}", process_group=group)
    if earlier is not None:
        earlier.result()


# %% wrong: a thread of one's own, without a copy | wrong | is: no copy of the state
import threading


def async_checkpoint(state, train_step, steps, every, folder, group):
    whole = [path for path in Path(folder).iterdir() if (path / ".metadata").exists()]
    done, earlier = 0, None
    if whole:
        newest = max(whole, key=lambda path: int(path.name))
        dcp.load(state, checkpoint_id=newest)
        done = int(newest.name)
    for n in range(done, steps):
        train_step(n)
        if (n + 1) % every == 0:
            if earlier is not None:
                earlier.join()
            options = {"checkpoint_id": f"{folder}/{n + 1}", "process_group": group}
            earlier = threading.Thread(target=dcp.save, args=(state,), kwargs=options)
            earlier.start()
    if earlier is not None:
        earlier.join()


# %% wrong: goes on one step too late | wrong | is: resumes one step late
def async_checkpoint(state, train_step, steps, every, folder, group):
    whole = [path for path in Path(folder).iterdir() if (path / ".metadata").exists()]
    done, earlier = -1, None
    if whole:
        newest = max(whole, key=lambda path: int(path.name))
        dcp.load(state, checkpoint_id=newest)
        done = int(newest.name)
    for n in range(done + 1, steps):
        train_step(n)
        if (n + 1) % every == 0:
            if earlier is not None:
                earlier.result()
            earlier = dcp.async_save(state, checkpoint_id=f"{folder}/{n + 1}", process_group=group)
    if earlier is not None:
        earlier.result()


# %% wrong: the newest by the names as texts | wrong | is: names compared as text
def async_checkpoint(state, train_step, steps, every, folder, group):
    whole = [path for path in Path(folder).iterdir() if (path / ".metadata").exists()]
    done, earlier = 0, None
    if whole:
        newest = max(whole)
        dcp.load(state, checkpoint_id=newest)
        done = int(newest.name)
    for n in range(done, steps):
        train_step(n)
        if (n + 1) % every == 0:
            if earlier is not None:
                earlier.result()
            earlier = dcp.async_save(state, checkpoint_id=f"{folder}/{n + 1}", process_group=group)
    if earlier is not None:
        earlier.result()


# %% right: all futures in a list, the steps are looked for from the end, a writer of its own
def async_checkpoint(state, train_step, steps, every, folder, group):
    n = steps
    while n and not Path(folder, f"step{n}", ".metadata").exists():
        n -= 1
    if n:
        dcp.load(
            state, storage_reader=dcp.FileSystemReader(f"{folder}/step{n}"), process_group=group
        )
    futures = []
    while n < steps:
        train_step(n)
        n += 1
        if not n % every:
            [future.result() for future in futures]
            writer = dcp.FileSystemWriter(f"{folder}/step{n}")
            futures = [dcp.async_save(state, storage_writer=writer, process_group=group)]
    [future.result() for future in futures]


# %% right: an older one is removed once a newer is whole
import shutil


def async_checkpoint(state, train_step, steps, every, folder, group):
    whole = [path for path in Path(folder).iterdir() if (path / ".metadata").exists()]
    done, earlier, last = 0, None, None
    if whole:
        newest = max(whole, key=lambda path: int(path.name))
        dcp.load(state, checkpoint_id=newest)
        done = last = int(newest.name)
    for n in range(done, steps):
        train_step(n)
        if (n + 1) % every == 0:
            if earlier is not None:
                earlier.result()
                if dist.get_rank() == 0 and last is not None:
                    shutil.rmtree(f"{folder}/{last}")
                last = n + 1 - every
            earlier = dcp.async_save(state, checkpoint_id=f"{folder}/{n + 1}", process_group=group)
    if earlier is not None:
        earlier.result()


# %% wrong: the one it came from is removed before the next is whole | wrong | is: one folder for all checkpoints, or the newest is removed
import shutil


def async_checkpoint(state, train_step, steps, every, folder, group):
    whole = [path for path in Path(folder).iterdir() if (path / ".metadata").exists()]
    done, earlier = 0, None
    if whole:
        newest = max(whole, key=lambda path: int(path.name))
        dcp.load(state, checkpoint_id=newest)
        done = int(newest.name)
    for n in range(done, steps):
        train_step(n)
        if (n + 1) % every == 0:
            if earlier is not None:
                earlier.result()
            if dist.get_rank() == 0 and done:
                shutil.rmtree(f"{folder}/{done}", ignore_errors=True)
            earlier = dcp.async_save(state, checkpoint_id=f"{folder}/{n + 1}", process_group=group)
    if earlier is not None:
        earlier.result()


# %% wrong: all older ones are removed before the next save | wrong | is: one folder for all checkpoints, or the newest is removed
import shutil


def async_checkpoint(state, train_step, steps, every, folder, group):
    whole = [path for path in Path(folder).iterdir() if (path / ".metadata").exists()]
    done, earlier = 0, None
    if whole:
        newest = max(whole, key=lambda path: int(path.name))
        dcp.load(state, checkpoint_id=newest)
        done = int(newest.name)
    for n in range(done, steps):
        train_step(n)
        if (n + 1) % every == 0:
            if earlier is not None:
                earlier.result()
            if dist.get_rank() == 0:
                for path in Path(folder).iterdir():
                    shutil.rmtree(path)
            dist.barrier()
            earlier = dcp.async_save(state, checkpoint_id=f"{folder}/{n + 1}", process_group=group)
    if earlier is not None:
        earlier.result()


# %% wrong: waits by done(), never asks for the result | wrong | is: a save's error is lost
import time


def async_checkpoint(state, train_step, steps, every, folder, group):
    whole = [path for path in Path(folder).iterdir() if (path / ".metadata").exists()]
    done, earlier = 0, None
    if whole:
        newest = max(whole, key=lambda path: int(path.name))
        dcp.load(state, checkpoint_id=newest)
        done = int(newest.name)
    for n in range(done, steps):
        train_step(n)
        if (n + 1) % every == 0:
            while earlier is not None and not earlier.done():
                time.sleep(0.01)
            earlier = dcp.async_save(state, checkpoint_id=f"{folder}/{n + 1}", process_group=group)
    if earlier is not None:
        earlier.result()


# %% wrong: a failed save is passed over | wrong | is: a save's error is lost
def async_checkpoint(state, train_step, steps, every, folder, group):
    whole = [path for path in Path(folder).iterdir() if (path / ".metadata").exists()]
    done, earlier = 0, None
    if whole:
        newest = max(whole, key=lambda path: int(path.name))
        dcp.load(state, checkpoint_id=newest)
        done = int(newest.name)
    for n in range(done, steps):
        train_step(n)
        if (n + 1) % every == 0:
            try:
                if earlier is not None:
                    earlier.result()
            except BaseException:
                print("a save failed")
            earlier = dcp.async_save(state, checkpoint_id=f"{folder}/{n + 1}", process_group=group)
    if earlier is not None:
        earlier.result()


# %% wrong: the newest by the folder's time | wrong | is: the newest by the file's time
def async_checkpoint(state, train_step, steps, every, folder, group):
    whole = [path for path in Path(folder).iterdir() if (path / ".metadata").exists()]
    done, earlier = 0, None
    if whole:
        newest = max(whole, key=lambda path: path.stat().st_mtime)
        dcp.load(state, checkpoint_id=newest)
        done = int(newest.name)
    for n in range(done, steps):
        train_step(n)
        if (n + 1) % every == 0:
            if earlier is not None:
                earlier.result()
            earlier = dcp.async_save(state, checkpoint_id=f"{folder}/{n + 1}", process_group=group)
    if earlier is not None:
        earlier.result()


# %% wrong: the steps by the number of checkpoints | wrong | is: counts the checkpoints
def async_checkpoint(state, train_step, steps, every, folder, group):
    whole = [path for path in Path(folder).iterdir() if (path / ".metadata").exists()]
    done, earlier = 0, None
    if whole:
        newest = max(whole, key=lambda path: int(path.name))
        dcp.load(state, checkpoint_id=newest)
        done = every * len(whole)
    for n in range(done, steps):
        train_step(n)
        if (n + 1) % every == 0:
            if earlier is not None:
                earlier.result()
            earlier = dcp.async_save(state, checkpoint_id=f"{folder}/{n + 1}", process_group=group)
    if earlier is not None:
        earlier.result()


# %% wrong: rank 0 alone waits for the earlier one and for the others | timed out | is: a wait that rank 0 alone makes
def async_checkpoint(state, train_step, steps, every, folder, group):
    whole = [path for path in Path(folder).iterdir() if (path / ".metadata").exists()]
    done, earlier = 0, None
    if whole:
        newest = max(whole, key=lambda path: int(path.name))
        dcp.load(state, checkpoint_id=newest)
        done = int(newest.name)
    for n in range(done, steps):
        train_step(n)
        if (n + 1) % every == 0:
            if earlier is not None:
                earlier.result()
            if dist.get_rank() == 0:
                dist.barrier()
            earlier = dcp.async_save(state, checkpoint_id=f"{folder}/{n + 1}", process_group=group)
    if earlier is not None:
        earlier.result()


# %% wrong: the folder has the number of the last step | wrong | is: the folder is named by the last step's number
def async_checkpoint(state, train_step, steps, every, folder, group):
    whole = [path for path in Path(folder).iterdir() if (path / ".metadata").exists()]
    done, earlier = 0, None
    if whole:
        newest = max(whole, key=lambda path: int(path.name))
        dcp.load(state, checkpoint_id=newest)
        done = int(newest.name)
    for n in range(done, steps):
        train_step(n)
        if (n + 1) % every == 0:
            if earlier is not None:
                earlier.result()
            earlier = dcp.async_save(state, checkpoint_id=f"{folder}/{n}", process_group=group)
    if earlier is not None:
        earlier.result()
