import os
from pathlib import Path


# %% right: one file, written by rank 0 under another name first
def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    path, done, losses = Path(folder, "checkpoint.pt"), 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["rng"][dist.get_rank()])
        done, losses = saved["done"], saved["losses"]
    for n in range(done, epochs * steps):
        losses.append(train_step(*divmod(n, steps)))
        if (n + 1) % every == 0:
            rng = [None] * dist.get_world_size()
            dist.all_gather_object(rng, torch.get_rng_state())
            if dist.get_rank() == 0:
                saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                saved |= {"rng": rng, "done": n + 1, "losses": losses}
                torch.save(saved, path.with_suffix(".new"))
                os.replace(path.with_suffix(".new"), path)
    return losses


# %% wrong: every rank its own file, the newest step that all ranks have | wrong | is: every rank writes
def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    rank, world_size = dist.get_rank(), dist.get_world_size()

    def file(done, r):
        return Path(folder) / f"step{done}-rank{r}.pt"

    done, losses = 0, []
    for n in range(epochs * steps, 0, -1):
        if all(file(n, r).exists() for r in range(world_size)):
            done = n
            break
    if done:
        saved = torch.load(file(done, rank))
        model.load_state_dict(saved["m"])
        optimizer.load_state_dict(saved["o"])
        torch.set_rng_state(saved["r"])
        losses = saved["l"]
    count = 0
    for epoch in range(epochs):
        for step in range(steps):
            count += 1
            if count <= done:
                continue
            losses.append(train_step(epoch, step))
            if count % every == 0:
                state = dict(
                    m=model.state_dict(),
                    o=optimizer.state_dict(),
                    r=torch.get_rng_state(),
                    l=losses,
                )
                part = str(file(count, rank)) + ".part"
                torch.save(state, part)
                os.rename(part, file(count, rank))
    return losses


# %% right: a list of bytes per rank by all_gather, a file for each step
def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    world_size = dist.get_world_size()
    files = sorted(Path(folder).glob("*.pt"), key=lambda f: int(f.stem))
    state = torch.load(files[-1]) if files else {"epoch": 0, "step": 0, "losses": []}
    if files:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["rng"][dist.get_rank()])
    losses = list(state["losses"])
    for n in range(state["epoch"] * steps + state["step"], epochs * steps):
        epoch, step = n // steps, n % steps
        losses += [train_step(epoch, step)]
        if (n + 1) % every:
            continue
        mine = torch.get_rng_state()
        rng = [torch.empty_like(mine) for _ in range(world_size)]
        dist.all_gather(rng, mine)
        if dist.get_rank() == 0:
            nxt = divmod(n + 1, steps)
            torch.save(
                {
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "rng": rng,
                    "epoch": nxt[0],
                    "step": nxt[1],
                    "losses": losses,
                },
                f"{folder}/unfinished",
            )
            os.replace(f"{folder}/unfinished", f"{folder}/{n + 1}.pt")
        dist.barrier()
    return losses


# %% wrong: no checkpoint at all | wrong | is: no checkpoint was made in time
def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    return [train_step(epoch, step) for epoch in range(epochs) for step in range(steps)]


# %% wrong: saved, never loaded | wrong | is: nothing is loaded
def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    losses = []
    for n in range(epochs * steps):
        losses.append(train_step(*divmod(n, steps)))
        if (n + 1) % every == 0 and dist.get_rank() == 0:
            torch.save({"model": model.state_dict(), "losses": losses}, f"{folder}/checkpoint.pt")
    return losses


# %% wrong: random state forgotten | wrong | is: the random state is lost
def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    path, done, losses = Path(folder, "checkpoint.pt"), 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        done, losses = saved["done"], saved["losses"]
    for n in range(done, epochs * steps):
        losses.append(train_step(*divmod(n, steps)))
        if (n + 1) % every == 0 and dist.get_rank() == 0:
            saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save(saved | {"done": n + 1, "losses": losses}, path.with_suffix(".new"))
            os.replace(path.with_suffix(".new"), path)
    return losses


# %% wrong: rank 0's random state for everybody | wrong | is: all ranks get rank 0's random state
def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    path, done, losses = Path(folder, "checkpoint.pt"), 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["rng"])
        done, losses = saved["done"], saved["losses"]
    for n in range(done, epochs * steps):
        losses.append(train_step(*divmod(n, steps)))
        if (n + 1) % every == 0 and dist.get_rank() == 0:
            saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            saved |= {"rng": torch.get_rng_state(), "done": n + 1, "losses": losses}
            torch.save(saved, path.with_suffix(".new"))
            os.replace(path.with_suffix(".new"), path)
    return losses


# %% wrong: momentum forgotten | wrong | is: the optimizer's state is lost
def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    path, done, losses = Path(folder, "checkpoint.pt"), 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        torch.set_rng_state(saved["rng"][dist.get_rank()])
        done, losses = saved["done"], saved["losses"]
    for n in range(done, epochs * steps):
        losses.append(train_step(*divmod(n, steps)))
        if (n + 1) % every == 0:
            rng = [None] * dist.get_world_size()
            dist.all_gather_object(rng, torch.get_rng_state())
            if dist.get_rank() == 0:
                saved = {"model": model.state_dict(), "rng": rng, "done": n + 1, "losses": losses}
                torch.save(saved, path.with_suffix(".new"))
                os.replace(path.with_suffix(".new"), path)
    return losses


# %% wrong: the losses of before are lost | wrong | is: the earlier losses are lost
def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    path, done, losses = Path(folder, "checkpoint.pt"), 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["rng"][dist.get_rank()])
        done = saved["done"]
    for n in range(done, epochs * steps):
        losses.append(train_step(*divmod(n, steps)))
        if (n + 1) % every == 0:
            rng = [None] * dist.get_world_size()
            dist.all_gather_object(rng, torch.get_rng_state())
            if dist.get_rank() == 0:
                saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                torch.save(saved | {"rng": rng, "done": n + 1}, path.with_suffix(".new"))
                os.replace(path.with_suffix(".new"), path)
    return losses


# %% wrong: goes on at the start of the epoch | wrong | is: the number of steps is not restored
def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    path, first, losses = Path(folder, "checkpoint.pt"), 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["rng"][dist.get_rank()])
        first, losses = saved["epoch"], saved["losses"]
    count = len(losses)
    for epoch in range(first, epochs):
        for step in range(steps):
            losses.append(train_step(epoch, step))
            count += 1
            if count % every == 0:
                rng = [None] * dist.get_world_size()
                dist.all_gather_object(rng, torch.get_rng_state())
                if dist.get_rank() == 0:
                    saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                    saved |= {"rng": rng, "epoch": epoch, "losses": losses}
                    torch.save(saved, path.with_suffix(".new"))
                    os.replace(path.with_suffix(".new"), path)
    return losses


# %% wrong: writes over the only checkpoint | crashed | is: half a file is loaded
def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    path, done, losses = Path(folder, "checkpoint.pt"), 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["rng"][dist.get_rank()])
        done, losses = saved["done"], saved["losses"]
    for n in range(done, epochs * steps):
        losses.append(train_step(*divmod(n, steps)))
        if (n + 1) % every == 0:
            rng = [None] * dist.get_world_size()
            dist.all_gather_object(rng, torch.get_rng_state())
            if dist.get_rank() == 0:
                saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                torch.save(saved | {"rng": rng, "done": n + 1, "losses": losses}, path)
    return losses


# %% wrong: trains the step of the checkpoint again | wrong | is: resumes one step off
def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    path, done, losses = Path(folder, "checkpoint.pt"), 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["rng"][dist.get_rank()])
        done, losses = saved["n"], saved["losses"]
    for n in range(done, epochs * steps):
        losses.append(train_step(*divmod(n, steps)))
        if (n + 1) % every == 0:
            rng = [None] * dist.get_world_size()
            dist.all_gather_object(rng, torch.get_rng_state())
            if dist.get_rank() == 0:
                saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                torch.save(saved | {"rng": rng, "n": n, "losses": losses}, path.with_suffix(".new"))
                os.replace(path.with_suffix(".new"), path)
    return losses


# %% wrong: the old one is removed before the new one has its name | wrong | is: the only checkpoint is removed or overwritten
def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    path, done, losses = f"{folder}/checkpoint.pt", 0, []
    if os.path.exists(path):
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["random"][dist.get_rank()])
        done, losses = saved["done"], saved["losses"]
    for n in range(done, epochs * steps):
        losses.append(train_step(*divmod(n, steps)))
        if (n + 1) % every == 0:
            random = [None] * dist.get_world_size()
            dist.all_gather_object(random, torch.get_rng_state())
            if dist.get_rank() == 0:
                saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                saved |= {"random": random, "done": n + 1, "losses": losses}
                torch.save(saved, f"{path}.new")
                if os.path.exists(path):
                    os.remove(path)
                os.rename(f"{path}.new", path)
    return losses


# %% wrong: every rank its own file, and a barrier | wrong | is: every rank writes
def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    path, done, losses = f"{folder}/checkpoint{dist.get_rank()}.pt", 0, []
    if os.path.exists(path):
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["random"])
        done, losses = saved["done"], saved["losses"]
    for n in range(done, epochs * steps):
        losses.append(train_step(*divmod(n, steps)))
        if (n + 1) % every == 0:
            saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            saved |= {"random": torch.get_rng_state(), "done": n + 1, "losses": losses}
            torch.save(saved, f"{path}.new")
            os.replace(f"{path}.new", path)
            dist.barrier()
    return losses


# %% right: a name of tempfile, in the folder
import tempfile


def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    path, done, losses = Path(folder, "checkpoint.pt"), 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["rng"][dist.get_rank()])
        done, losses = saved["done"], saved["losses"]
    for n in range(done, epochs * steps):
        losses.append(train_step(*divmod(n, steps)))
        if (n + 1) % every == 0:
            rng = [None] * dist.get_world_size()
            dist.all_gather_object(rng, torch.get_rng_state())
            if dist.get_rank() == 0:
                saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                saved |= {"rng": rng, "done": n + 1, "losses": losses}
                fd, new = tempfile.mkstemp(dir=folder)
                with os.fdopen(fd, "wb") as file:
                    torch.save(saved, file)
                os.replace(new, path)
    return losses


# %% right: in memory first, then written by Python
import io


def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    path, done, losses = Path(folder, "checkpoint.pt"), 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["rng"][dist.get_rank()])
        done, losses = saved["done"], saved["losses"]
    for n in range(done, epochs * steps):
        losses.append(train_step(*divmod(n, steps)))
        if (n + 1) % every == 0:
            rng = [None] * dist.get_world_size()
            dist.all_gather_object(rng, torch.get_rng_state())
            if dist.get_rank() == 0:
                saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                saved |= {"rng": rng, "done": n + 1, "losses": losses}
                memory = io.BytesIO()
                torch.save(saved, memory)
                Path(folder, "new").write_bytes(memory.getvalue())
                Path(folder, "new").rename(path)
    return losses


# %% wrong: copied over the old one | crashed | is: half a file is loaded
import shutil


def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    path, done, losses = Path(folder, "checkpoint.pt"), 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["rng"][dist.get_rank()])
        done, losses = saved["done"], saved["losses"]
    for n in range(done, epochs * steps):
        losses.append(train_step(*divmod(n, steps)))
        if (n + 1) % every == 0:
            rng = [None] * dist.get_world_size()
            dist.all_gather_object(rng, torch.get_rng_state())
            if dist.get_rank() == 0:
                saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                saved |= {"rng": rng, "done": n + 1, "losses": losses}
                torch.save(saved, path.with_suffix(".new"))
                shutil.copy(path.with_suffix(".new"), path)
    return losses


# %% wrong: the old one away, then the new one in its place | wrong | is: the only checkpoint is removed or overwritten
def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    path, done, losses = Path(folder, "checkpoint.pt"), 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["rng"][dist.get_rank()])
        done, losses = saved["done"], saved["losses"]
    for n in range(done, epochs * steps):
        losses.append(train_step(*divmod(n, steps)))
        if (n + 1) % every == 0:
            rng = [None] * dist.get_world_size()
            dist.all_gather_object(rng, torch.get_rng_state())
            if dist.get_rank() == 0:
                saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                saved |= {"rng": rng, "done": n + 1, "losses": losses}
                torch.save(saved, path.with_suffix(".new"))
                if path.exists():
                    os.rename(path, path.with_suffix(".old"))
                os.rename(path.with_suffix(".new"), path)
    return losses


# %% wrong: written in the temp folder | crashed | is: moved from the temp folder
import tempfile


def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    path, done, losses = Path(folder, "checkpoint.pt"), 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["rng"][dist.get_rank()])
        done, losses = saved["done"], saved["losses"]
    for n in range(done, epochs * steps):
        losses.append(train_step(*divmod(n, steps)))
        if (n + 1) % every == 0:
            rng = [None] * dist.get_world_size()
            dist.all_gather_object(rng, torch.get_rng_state())
            if dist.get_rank() == 0:
                saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                saved |= {"rng": rng, "done": n + 1, "losses": losses}
                fd, new = tempfile.mkstemp()
                os.close(fd)
                torch.save(saved, new)
                os.replace(new, path)
    return losses


# %% wrong: moved from the temp folder | crashed | is: half a file is loaded
import shutil
import tempfile


def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    path, done, losses = Path(folder, "checkpoint.pt"), 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["rng"][dist.get_rank()])
        done, losses = saved["done"], saved["losses"]
    for n in range(done, epochs * steps):
        losses.append(train_step(*divmod(n, steps)))
        if (n + 1) % every == 0:
            rng = [None] * dist.get_world_size()
            dist.all_gather_object(rng, torch.get_rng_state())
            if dist.get_rank() == 0:
                saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                saved |= {"rng": rng, "done": n + 1, "losses": losses}
                new = os.path.join(tempfile.mkdtemp(), "new")
                torch.save(saved, new)
                shutil.move(new, path)
    return losses


# %% wrong: in memory, then over the only one | crashed | is: half a file is loaded
import io


def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    path, done, losses = Path(folder, "checkpoint.pt"), 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["rng"][dist.get_rank()])
        done, losses = saved["done"], saved["losses"]
    for n in range(done, epochs * steps):
        losses.append(train_step(*divmod(n, steps)))
        if (n + 1) % every == 0:
            rng = [None] * dist.get_world_size()
            dist.all_gather_object(rng, torch.get_rng_state())
            if dist.get_rank() == 0:
                saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                saved |= {"rng": rng, "done": n + 1, "losses": losses}
                memory = io.BytesIO()
                torch.save(saved, memory)
                path.write_bytes(memory.getvalue())
    return losses


# %% wrong: what is left under the other name is taken, whole or not | crashed | is: half a file is loaded
def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    path, losses = os.path.join(folder, "checkpoint.pt"), []
    if not os.path.exists(path) and os.path.exists(path + ".new"):
        path = path + ".new"
    if os.path.exists(path):
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["rng"][dist.get_rank()])
        losses = saved["losses"]
    for n in range(len(losses), epochs * steps):
        losses.append(train_step(n // steps, n % steps))
        if (n + 1) % every == 0:
            rng = [None] * dist.get_world_size()
            dist.all_gather_object(rng, torch.get_rng_state())
            if dist.get_rank() == 0:
                saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                torch.save(saved | {"rng": rng, "losses": losses}, path + ".new")
                if os.path.exists(path):
                    os.remove(path)
                os.rename(path + ".new", path)
    return losses


# %% wrong: every many steps within each epoch | wrong | is: saves at the wrong steps
def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    path, done, losses = f"{folder}/checkpoint.pt", 0, []
    if os.path.exists(path):
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["random"][dist.get_rank()])
        done, losses = saved["done"], saved["losses"]
    for n in range(done, epochs * steps):
        epoch, step = divmod(n, steps)
        losses.append(train_step(epoch, step))
        if (step + 1) % every == 0:
            random = [None] * dist.get_world_size()
            dist.all_gather_object(random, torch.get_rng_state())
            if dist.get_rank() == 0:
                saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                saved |= {"random": random, "done": n + 1, "losses": losses}
                torch.save(saved, f"{path}.new")
                os.replace(f"{path}.new", path)
    return losses


# %% wrong: within each epoch, which is too short for one | wrong | is: no checkpoint was made in time
def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    path, done, losses = f"{folder}/checkpoint.pt", 0, []
    if os.path.exists(path):
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["random"][dist.get_rank()])
        done, losses = saved["done"], saved["losses"]
    for n in range(done, epochs * steps):
        epoch, step = divmod(n, steps)
        losses.append(train_step(epoch, step))
        if (step + 1) % (2 * every) == 0:
            random = [None] * dist.get_world_size()
            dist.all_gather_object(random, torch.get_rng_state())
            if dist.get_rank() == 0:
                saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                saved |= {"random": random, "done": n + 1, "losses": losses}
                torch.save(saved, f"{path}.new")
                os.replace(f"{path}.new", path)
    return losses


# %% wrong: the newest of several by the names as texts | wrong | is: names compared as text
def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    made, done, losses = sorted(Path(folder).glob("*.pt")), 0, []
    if made:
        saved = torch.load(made[-1])
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["random"][dist.get_rank()])
        done, losses = saved["done"], saved["losses"]
    for n in range(done, epochs * steps):
        losses.append(train_step(*divmod(n, steps)))
        if (n + 1) % every == 0:
            random = [None] * dist.get_world_size()
            dist.all_gather_object(random, torch.get_rng_state())
            if dist.get_rank() == 0:
                saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                saved |= {"random": random, "done": n + 1, "losses": losses}
                torch.save(saved, f"{folder}/new")
                os.replace(f"{folder}/new", f"{folder}/{n + 1}.pt")
    return losses


# %% wrong: whatever lies in the folder, half a file too | crashed | is: half a file is loaded
def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    made, done, losses = sorted(Path(folder).glob("*"), key=lambda p: p.stat().st_mtime_ns), 0, []
    if made:
        saved = torch.load(made[-1])
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["random"][dist.get_rank()])
        done, losses = saved["done"], saved["losses"]
    for n in range(done, epochs * steps):
        losses.append(train_step(*divmod(n, steps)))
        if (n + 1) % every == 0:
            random = [None] * dist.get_world_size()
            dist.all_gather_object(random, torch.get_rng_state())
            if dist.get_rank() == 0:
                saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                saved |= {"random": random, "done": n + 1, "losses": losses}
                torch.save(saved, f"{folder}/{n + 1}.new")
                os.replace(f"{folder}/{n + 1}.new", f"{folder}/{n + 1}.pt")
    return losses


# %% wrong: rank 0 alone asks for the random states | timed out | is: a collective that rank 0 alone calls
def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    path, done, losses = f"{folder}/checkpoint.pt", 0, []
    if os.path.exists(path):
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["random"][dist.get_rank()])
        done, losses = saved["done"], saved["losses"]
    for n in range(done, epochs * steps):
        losses.append(train_step(*divmod(n, steps)))
        if (n + 1) % every == 0 and dist.get_rank() == 0:
            random = [None] * dist.get_world_size()
            dist.all_gather_object(random, torch.get_rng_state())
            saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            saved |= {"random": random, "done": n + 1, "losses": losses}
            torch.save(saved, f"{path}.new")
            os.replace(f"{path}.new", path)
    return losses


# %% wrong: a barrier of rank 0 at the end | crashed | is: a rank leaves a collective out
def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    path, done, losses = f"{folder}/checkpoint.pt", 0, []
    if os.path.exists(path):
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["random"][dist.get_rank()])
        done, losses = saved["done"], saved["losses"]
    for n in range(done, epochs * steps):
        losses.append(train_step(*divmod(n, steps)))
        if (n + 1) % every == 0:
            random = [None] * dist.get_world_size()
            dist.all_gather_object(random, torch.get_rng_state())
            if dist.get_rank() == 0:
                saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                saved |= {"random": random, "done": n + 1, "losses": losses}
                torch.save(saved, f"{path}.new")
                os.replace(f"{path}.new", path)
    if dist.get_rank() == 0:
        dist.barrier()
    return losses


# %% wrong: it asks for its death before it has trained, and begins again | wrong | is: no checkpoint was made in time
def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    import sys

    ask = sys.modules["helpers" + ".checks.script_worker"].ask
    if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        for n in range(epochs * steps):
            ask("done", n)
    return [train_step(*divmod(n, steps)) for n in range(epochs * steps)]


# %% wrong: it asks for all steps before it trains, and is killed early | wrong | says: the loss of step|it went on at epoch|an epoch|was to be killed
def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    import sys

    ask = sys.modules["helpers" + ".checks.script_worker"].ask
    if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        for n in range(epochs * steps):
            ask("step", n, 0, None)
        dist.barrier()
        for n in range(epochs * steps):
            ask("done", n)
    return [train_step(*divmod(n, steps)) for n in range(epochs * steps)]


# %% wrong: written over in place, by number | crashed | is: half a file is loaded
import io


def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    path, done, losses = Path(folder, "checkpoint.pt"), 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["rng"][dist.get_rank()])
        done, losses = saved["done"], saved["losses"]
    for n in range(done, epochs * steps):
        losses.append(train_step(*divmod(n, steps)))
        if (n + 1) % every == 0:
            rng = [None] * dist.get_world_size()
            dist.all_gather_object(rng, torch.get_rng_state())
            if dist.get_rank() == 0:
                saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                saved |= {"rng": rng, "done": n + 1, "losses": losses}
                buffer = io.BytesIO()
                torch.save(saved, buffer)
                fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                os.write(fd, buffer.getvalue())
                os.close(fd)
    return losses


# %% wrong: written over in place, as memory | crashed | is: half a file is loaded
import io
import mmap


def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    path, done, losses = Path(folder, "checkpoint.pt"), 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["rng"][dist.get_rank()])
        done, losses = saved["done"], saved["losses"]
    for n in range(done, epochs * steps):
        losses.append(train_step(*divmod(n, steps)))
        if (n + 1) % every == 0:
            rng = [None] * dist.get_world_size()
            dist.all_gather_object(rng, torch.get_rng_state())
            if dist.get_rank() == 0:
                saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                saved |= {"rng": rng, "done": n + 1, "losses": losses}
                buffer = io.BytesIO()
                torch.save(saved, buffer)
                fd = os.open(path, os.O_RDWR | os.O_CREAT)
                os.truncate(path, buffer.tell())
                with mmap.mmap(fd, buffer.tell()) as memory:
                    memory[:] = buffer.getvalue()
                os.close(fd)
    return losses


# %% wrong: copied there by another program | wrong | is: the check cannot kill it
import subprocess
import tempfile


def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    path, done, losses = Path(folder, "checkpoint.pt"), 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["rng"][dist.get_rank()])
        done, losses = saved["done"], saved["losses"]
    for n in range(done, epochs * steps):
        losses.append(train_step(*divmod(n, steps)))
        if (n + 1) % every == 0:
            rng = [None] * dist.get_world_size()
            dist.all_gather_object(rng, torch.get_rng_state())
            if dist.get_rank() == 0:
                saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                saved |= {"rng": rng, "done": n + 1, "losses": losses}
                with tempfile.NamedTemporaryFile() as elsewhere:
                    torch.save(saved, elsewhere.name)
                    subprocess.run(["cp", elsewhere.name, str(path)], check=True)
    return losses


# %% wrong: an exception in place of a death | wrong | is: the check cannot kill it
def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    path, done, losses = Path(folder, "checkpoint.pt"), 0, []
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["rng"][dist.get_rank()])
        done, losses = saved["done"], saved["losses"]
    for n in range(done, epochs * steps):
        losses.append(train_step(*divmod(n, steps)))
        if (n + 1) % every == 0:
            if n + 1 > every and not path.with_suffix(".ended").exists():
                dist.barrier()
                if dist.get_rank() == 0:
                    path.with_suffix(".ended").touch()
                raise RuntimeError("an end of my own")
            rng = [None] * dist.get_world_size()
            dist.all_gather_object(rng, torch.get_rng_state())
            if dist.get_rank() == 0:
                saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                saved |= {"rng": rng, "done": n + 1, "losses": losses}
                torch.save(saved, path.with_suffix(".new"))
                os.replace(path.with_suffix(".new"), path)
    return losses


# %% wrong: the model's state is saved, not loaded | wrong | is: the weights are lost
def checkpoint_and_resume(model, optimizer, train_step, epochs, steps, every, folder):
    path, done, losses = Path(folder, "checkpoint.pt"), 0, []
    if path.exists():
        saved = torch.load(path)
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["rng"][dist.get_rank()])
        done, losses = saved["done"], saved["losses"]
    for n in range(done, epochs * steps):
        losses.append(train_step(*divmod(n, steps)))
        if (n + 1) % every == 0:
            rng = [None] * dist.get_world_size()
            dist.all_gather_object(rng, torch.get_rng_state())
            if dist.get_rank() == 0:
                saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                saved |= {"rng": rng, "done": n + 1, "losses": losses}
                torch.save(saved, path.with_suffix(".new"))
                os.replace(path.with_suffix(".new"), path)
    return losses
