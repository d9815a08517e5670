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


# %% right: concurrent.futures waits, the steps are looked for from the end, a writer of its own
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


# %% wrong: saved in the main thread | wrong | says: the main thread itself writes
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


# %% wrong: waits for the save at once | wrong | says: Keep the future
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


# %% wrong: on the group of the training | wrong | says: could meet in another order
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


# %% wrong: never waits for the earlier one | wrong | says: while the one before is still being written
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


# %% wrong: the last one is not waited for | wrong | says: wait for the last future, too
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


# %% wrong: always the same folder | crashed | says: a folder of its
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


# %% wrong: the newest folder, whole or not | crashed | says: without a `.metadata`
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


# %% wrong: nothing is loaded | wrong | says: looked for in `folder`, and loaded
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


# %% wrong: only the number of the step is taken over | wrong | says: those that every job begins with
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


# %% wrong: a thread of one's own, without a copy | wrong | says: they are those of after
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


# %% wrong: goes on one step too late | wrong | says: it goes on with step
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


# %% wrong: the newest by the names as texts | wrong | says: as texts
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
