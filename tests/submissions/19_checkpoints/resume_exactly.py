import os
from pathlib import Path


# %% right: what is left of the order is kept
def resume_exactly(parts, generator, train_step, samples, batch, steps, every, folder):
    path, rank, size = f"{folder}/checkpoint.pt", dist.get_rank(), dist.get_world_size()
    order, losses = [], []
    if os.path.exists(path):
        saved = torch.load(path)
        for name, part in parts.items():
            part.load_state_dict(saved[name])
        generator.set_state(saved["generator"])
        order, losses = saved["order"], saved["losses"]
    while len(losses) < steps:
        if not order:
            order = torch.randperm(samples, generator=generator).tolist()
        now, order = order[:batch], order[batch:]
        losses.append(train_step(now[rank::size]))
        if len(losses) % every == 0 and rank == 0:
            saved = {name: part.state_dict() for name, part in parts.items()}
            saved |= {"generator": generator.get_state(), "order": order, "losses": losses}
            torch.save(saved, f"{path}.new")
            os.replace(f"{path}.new", path)
    return losses


# %% right: the order at its beginning and a place in it, chunks in place of stripes
def resume_exactly(parts, generator, train_step, samples, batch, steps, every, folder):
    file = Path(folder) / "newest"
    own = {"n": 0, "at": 0, "order": None, "losses": []}
    if file.exists():
        saved = torch.load(file, weights_only=True)
        own = saved.pop("own")
        generator.set_state(saved.pop("generator"))
        for name, state in saved.items():
            parts[name].load_state_dict(state)
    for n in range(own["n"], steps):
        if own["order"] is None or own["at"] >= samples:
            own["order"], own["at"] = torch.randperm(samples, generator=generator), 0
        now = own["order"][own["at"] : own["at"] + batch]
        own["at"] += batch
        mine = now.tensor_split(dist.get_world_size())[dist.get_rank()]
        own["losses"].append(train_step(mine))
        own["n"] = n + 1
        if (n + 1) % every == 0 and dist.get_rank() == 0:
            saved = {name: part.state_dict() for name, part in parts.items()}
            with open(f"{folder}/unfinished", "wb") as out:
                torch.save(saved | {"own": own, "generator": generator.get_state()}, out)
                out.flush()
                os.fsync(out.fileno())
            os.replace(f"{folder}/unfinished", file)
    return own["losses"]


# %% wrong: another order is drawn for the rest of the epoch | wrong | is: a different order for the rest of the epoch
def resume_exactly(parts, generator, train_step, samples, batch, steps, every, folder):
    path, rank, size = f"{folder}/checkpoint.pt", dist.get_rank(), dist.get_world_size()
    order, losses = [], []
    if os.path.exists(path):
        saved = torch.load(path)
        for name, part in parts.items():
            part.load_state_dict(saved[name])
        generator.set_state(saved["generator"])
        losses = saved["losses"]
    while len(losses) < steps:
        if not order:
            order = torch.randperm(samples, generator=generator).tolist()
        now, order = order[:batch], order[batch:]
        losses.append(train_step(now[rank::size]))
        if len(losses) % every == 0 and rank == 0:
            saved = {name: part.state_dict() for name, part in parts.items()}
            saved |= {"generator": generator.get_state(), "losses": losses}
            torch.save(saved, f"{path}.new")
            os.replace(f"{path}.new", path)
    return losses


# %% wrong: the generator begins anew | wrong | is: the generator is lost
def resume_exactly(parts, generator, train_step, samples, batch, steps, every, folder):
    path, rank, size = f"{folder}/checkpoint.pt", dist.get_rank(), dist.get_world_size()
    order, losses = [], []
    if os.path.exists(path):
        saved = torch.load(path)
        for name, part in parts.items():
            part.load_state_dict(saved[name])
        order, losses = saved["order"], saved["losses"]
    while len(losses) < steps:
        if not order:
            order = torch.randperm(samples, generator=generator).tolist()
        now, order = order[:batch], order[batch:]
        losses.append(train_step(now[rank::size]))
        if len(losses) % every == 0 and rank == 0:
            saved = {name: part.state_dict() for name, part in parts.items()}
            saved |= {"generator": generator.get_state(), "order": order, "losses": losses}
            torch.save(saved, f"{path}.new")
            os.replace(f"{path}.new", path)
    return losses


# %% wrong: the scheduler is forgotten | wrong | is: the scheduler is lost
def resume_exactly(parts, generator, train_step, samples, batch, steps, every, folder):
    path, rank, size = f"{folder}/checkpoint.pt", dist.get_rank(), dist.get_world_size()
    order, losses = [], []
    if os.path.exists(path):
        saved = torch.load(path)
        for name, part in parts.items():
            if name != "scheduler":
                part.load_state_dict(saved[name])
        generator.set_state(saved["generator"])
        order, losses = saved["order"], saved["losses"]
    while len(losses) < steps:
        if not order:
            order = torch.randperm(samples, generator=generator).tolist()
        now, order = order[:batch], order[batch:]
        losses.append(train_step(now[rank::size]))
        if len(losses) % every == 0 and rank == 0:
            saved = {name: part.state_dict() for name, part in parts.items()}
            saved |= {"generator": generator.get_state(), "order": order, "losses": losses}
            torch.save(saved, f"{path}.new")
            os.replace(f"{path}.new", path)
    return losses


# %% wrong: the optimizer is forgotten | wrong | is: the optimizer is lost
def resume_exactly(parts, generator, train_step, samples, batch, steps, every, folder):
    path, rank, size = f"{folder}/checkpoint.pt", dist.get_rank(), dist.get_world_size()
    order, losses = [], []
    if os.path.exists(path):
        saved = torch.load(path)
        for name, part in parts.items():
            if name != "optimizer":
                part.load_state_dict(saved[name])
        generator.set_state(saved["generator"])
        order, losses = saved["order"], saved["losses"]
    while len(losses) < steps:
        if not order:
            order = torch.randperm(samples, generator=generator).tolist()
        now, order = order[:batch], order[batch:]
        losses.append(train_step(now[rank::size]))
        if len(losses) % every == 0 and rank == 0:
            saved = {name: part.state_dict() for name, part in parts.items()}
            saved |= {"generator": generator.get_state(), "order": order, "losses": losses}
            torch.save(saved, f"{path}.new")
            os.replace(f"{path}.new", path)
    return losses


# %% wrong: the model is forgotten | wrong | is: the model is lost
def resume_exactly(parts, generator, train_step, samples, batch, steps, every, folder):
    path, rank, size = f"{folder}/checkpoint.pt", dist.get_rank(), dist.get_world_size()
    order, losses = [], []
    if os.path.exists(path):
        saved = torch.load(path)
        for name, part in parts.items():
            if name != "model":
                part.load_state_dict(saved[name])
        generator.set_state(saved["generator"])
        order, losses = saved["order"], saved["losses"]
    while len(losses) < steps:
        if not order:
            order = torch.randperm(samples, generator=generator).tolist()
        now, order = order[:batch], order[batch:]
        losses.append(train_step(now[rank::size]))
        if len(losses) % every == 0 and rank == 0:
            saved = {name: part.state_dict() for name, part in parts.items()}
            saved |= {"generator": generator.get_state(), "order": order, "losses": losses}
            torch.save(saved, f"{path}.new")
            os.replace(f"{path}.new", path)
    return losses


# %% wrong: the epoch's order from its beginning | wrong | is: the epoch's order from its beginning
def resume_exactly(parts, generator, train_step, samples, batch, steps, every, folder):
    path, rank, size = f"{folder}/checkpoint.pt", dist.get_rank(), dist.get_world_size()
    order, whole, losses = [], [], []
    if os.path.exists(path):
        saved = torch.load(path)
        for name, part in parts.items():
            part.load_state_dict(saved[name])
        generator.set_state(saved["generator"])
        order, losses = saved["order"], saved["losses"]
    while len(losses) < steps:
        if not order:
            order = whole = torch.randperm(samples, generator=generator).tolist()
        now, order = order[:batch], order[batch:]
        losses.append(train_step(now[rank::size]))
        if len(losses) % every == 0 and rank == 0:
            saved = {name: part.state_dict() for name, part in parts.items()}
            saved |= {
                "generator": generator.get_state(),
                "order": whole if order else [],
                "losses": losses,
            }
            torch.save(saved, f"{path}.new")
            os.replace(f"{path}.new", path)
    return losses


# %% wrong: every rank trains the whole batch | wrong | is: every rank trains the whole batch
def resume_exactly(parts, generator, train_step, samples, batch, steps, every, folder):
    path, rank, size = f"{folder}/checkpoint.pt", dist.get_rank(), dist.get_world_size()
    order, losses = [], []
    if os.path.exists(path):
        saved = torch.load(path)
        for name, part in parts.items():
            part.load_state_dict(saved[name])
        generator.set_state(saved["generator"])
        order, losses = saved["order"], saved["losses"]
    while len(losses) < steps:
        if not order:
            order = torch.randperm(samples, generator=generator).tolist()
        now, order = order[:batch], order[batch:]
        losses.append(train_step(now))
        if len(losses) % every == 0 and rank == 0:
            saved = {name: part.state_dict() for name, part in parts.items()}
            saved |= {"generator": generator.get_state(), "order": order, "losses": losses}
            torch.save(saved, f"{path}.new")
            os.replace(f"{path}.new", path)
    return losses


# %% wrong: the batch is cut without its rest | wrong | is: the remainder of a batch is left out
def resume_exactly(parts, generator, train_step, samples, batch, steps, every, folder):
    path, rank, size = f"{folder}/checkpoint.pt", dist.get_rank(), dist.get_world_size()
    order, losses = [], []
    if os.path.exists(path):
        saved = torch.load(path)
        for name, part in parts.items():
            part.load_state_dict(saved[name])
        generator.set_state(saved["generator"])
        order, losses = saved["order"], saved["losses"]
    while len(losses) < steps:
        if not order:
            order = torch.randperm(samples, generator=generator).tolist()
        now, order = order[:batch], order[batch:]
        losses.append(train_step(now[rank * (len(now) // size) : (rank + 1) * (len(now) // size)]))
        if len(losses) % every == 0 and rank == 0:
            saved = {name: part.state_dict() for name, part in parts.items()}
            saved |= {"generator": generator.get_state(), "order": order, "losses": losses}
            torch.save(saved, f"{path}.new")
            os.replace(f"{path}.new", path)
    return losses


# %% wrong: a file for each rank, which another world does not find | wrong | is: ranks other than 0 write
def resume_exactly(parts, generator, train_step, samples, batch, steps, every, folder):
    path, rank, size = f"{folder}/rank{dist.get_rank()}.pt", dist.get_rank(), dist.get_world_size()
    order, losses = [], []
    if os.path.exists(path):
        saved = torch.load(path)
        for name, part in parts.items():
            part.load_state_dict(saved[name])
        generator.set_state(saved["generator"])
        order, losses = saved["order"], saved["losses"]
    while len(losses) < steps:
        if not order:
            order = torch.randperm(samples, generator=generator).tolist()
        now, order = order[:batch], order[batch:]
        losses.append(train_step(now[rank::size]))
        if len(losses) % every == 0:
            saved = {name: part.state_dict() for name, part in parts.items()}
            saved |= {"generator": generator.get_state(), "order": order, "losses": losses}
            torch.save(saved, f"{path}.new")
            os.replace(f"{path}.new", path)
    return losses


# %% wrong: saved before the losses are added | wrong | is: resumes one step off
def resume_exactly(parts, generator, train_step, samples, batch, steps, every, folder):
    path, rank, size = f"{folder}/checkpoint.pt", dist.get_rank(), dist.get_world_size()
    order, losses = [], []
    if os.path.exists(path):
        saved = torch.load(path)
        for name, part in parts.items():
            part.load_state_dict(saved[name])
        generator.set_state(saved["generator"])
        order, losses = saved["order"], saved["losses"]
    while len(losses) < steps:
        if not order:
            order = torch.randperm(samples, generator=generator).tolist()
        now, order = order[:batch], order[batch:]
        loss = train_step(now[rank::size])
        if (len(losses) + 1) % every == 0 and rank == 0:
            saved = {name: part.state_dict() for name, part in parts.items()}
            saved |= {"generator": generator.get_state(), "order": order, "losses": losses}
            torch.save(saved, f"{path}.new")
            os.replace(f"{path}.new", path)
        losses.append(loss)
    return losses


# %% wrong: nothing is loaded | wrong | is: nothing is loaded
def resume_exactly(parts, generator, train_step, samples, batch, steps, every, folder):
    path, rank, size = f"{folder}/checkpoint.pt", dist.get_rank(), dist.get_world_size()
    order, losses = [], []
    if os.path.exists("checkpoint.pt"):
        saved = torch.load(path)
        for name, part in parts.items():
            part.load_state_dict(saved[name])
        generator.set_state(saved["generator"])
        order, losses = saved["order"], saved["losses"]
    while len(losses) < steps:
        if not order:
            order = torch.randperm(samples, generator=generator).tolist()
        now, order = order[:batch], order[batch:]
        losses.append(train_step(now[rank::size]))
        if len(losses) % every == 0 and rank == 0:
            saved = {name: part.state_dict() for name, part in parts.items()}
            saved |= {"generator": generator.get_state(), "order": order, "losses": losses}
            torch.save(saved, f"{path}.new")
            os.replace(f"{path}.new", path)
    return losses


# %% wrong: the losses of before are lost | wrong | is: the earlier losses are lost
def resume_exactly(parts, generator, train_step, samples, batch, steps, every, folder):
    path, rank, size = f"{folder}/checkpoint.pt", dist.get_rank(), dist.get_world_size()
    order, losses, already = [], [], 0
    if os.path.exists(path):
        saved = torch.load(path)
        for name, part in parts.items():
            part.load_state_dict(saved[name])
        generator.set_state(saved["generator"])
        order, already = saved["order"], saved["done"]
    while len(losses) + already < steps:
        if not order:
            order = torch.randperm(samples, generator=generator).tolist()
        now, order = order[:batch], order[batch:]
        losses.append(train_step(now[rank::size]))
        if (len(losses) + already) % every == 0 and rank == 0:
            saved = {name: part.state_dict() for name, part in parts.items()}
            saved |= {
                "generator": generator.get_state(),
                "order": order,
                "losses": losses,
                "done": len(losses) + already,
            }
            torch.save(saved, f"{path}.new")
            os.replace(f"{path}.new", path)
    return losses


# %% wrong: over the only one | crashed | is: half a file is loaded
def resume_exactly(parts, generator, train_step, samples, batch, steps, every, folder):
    path, rank, size = f"{folder}/checkpoint.pt", dist.get_rank(), dist.get_world_size()
    order, losses = [], []
    if os.path.exists(path):
        saved = torch.load(path)
        for name, part in parts.items():
            part.load_state_dict(saved[name])
        generator.set_state(saved["generator"])
        order, losses = saved["order"], saved["losses"]
    while len(losses) < steps:
        if not order:
            order = torch.randperm(samples, generator=generator).tolist()
        now, order = order[:batch], order[batch:]
        losses.append(train_step(now[rank::size]))
        if len(losses) % every == 0 and rank == 0:
            saved = {name: part.state_dict() for name, part in parts.items()}
            saved |= {"generator": generator.get_state(), "order": order, "losses": losses}
            torch.save(saved, path)
    return losses


# %% wrong: all ranks write one file, one after the other | wrong | is: ranks other than 0 write
def resume_exactly(parts, generator, train_step, samples, batch, steps, every, folder):
    path, rank, size = f"{folder}/checkpoint.pt", dist.get_rank(), dist.get_world_size()
    order, losses = [], []
    if os.path.exists(path):
        saved = torch.load(path)
        for name, part in parts.items():
            part.load_state_dict(saved[name])
        generator.set_state(saved["generator"])
        order, losses = saved["order"], saved["losses"]
    while len(losses) < steps:
        if not order:
            order = torch.randperm(samples, generator=generator).tolist()
        now, order = order[:batch], order[batch:]
        losses.append(train_step(now[rank::size]))
        if len(losses) % every == 0:
            saved = {name: part.state_dict() for name, part in parts.items()}
            saved |= {"generator": generator.get_state(), "order": order, "losses": losses}
            for turn in range(size):
                if turn == rank:
                    torch.save(saved, path)
                dist.barrier()
    return losses


# %% wrong: the old one is removed first | wrong | is: the only checkpoint is removed or overwritten
def resume_exactly(parts, generator, train_step, samples, batch, steps, every, folder):
    path, rank, size = f"{folder}/checkpoint.pt", dist.get_rank(), dist.get_world_size()
    order, losses = [], []
    if os.path.exists(path):
        saved = torch.load(path)
        for name, part in parts.items():
            part.load_state_dict(saved[name])
        generator.set_state(saved["generator"])
        order, losses = saved["order"], saved["losses"]
    while len(losses) < steps:
        if not order:
            order = torch.randperm(samples, generator=generator).tolist()
        now, order = order[:batch], order[batch:]
        losses.append(train_step(now[rank::size]))
        if len(losses) % every == 0 and rank == 0:
            saved = {name: part.state_dict() for name, part in parts.items()}
            saved |= {"generator": generator.get_state(), "order": order, "losses": losses}
            if os.path.exists(path):
                os.remove(path)
            torch.save(saved, path)
    return losses


# %% wrong: every rank writes a whole file and renames it | wrong | is: ranks other than 0 write
def resume_exactly(parts, generator, train_step, samples, batch, steps, every, folder):
    path, rank, size = f"{folder}/checkpoint.pt", dist.get_rank(), dist.get_world_size()
    order, losses = [], []
    if os.path.exists(path):
        saved = torch.load(path)
        for name, part in parts.items():
            part.load_state_dict(saved[name])
        generator.set_state(saved["generator"])
        order, losses = saved["order"], saved["losses"]
    while len(losses) < steps:
        if not order:
            order = torch.randperm(samples, generator=generator).tolist()
        now, order = order[:batch], order[batch:]
        losses.append(train_step(now[rank::size]))
        if len(losses) % every == 0:
            saved = {name: part.state_dict() for name, part in parts.items()}
            saved |= {"generator": generator.get_state(), "order": order, "losses": losses}
            torch.save(saved, f"{path}.{rank}")
            os.replace(f"{path}.{rank}", path)
    return losses


# %% wrong: a rank without samples leaves the step out | crashed | is: a rank without samples leaves the step out
def resume_exactly(parts, generator, train_step, samples, batch, steps, every, folder):
    path, rank, size = f"{folder}/checkpoint.pt", dist.get_rank(), dist.get_world_size()
    order, losses = [], []
    if os.path.exists(path):
        saved = torch.load(path)
        for name, part in parts.items():
            part.load_state_dict(saved[name])
        generator.set_state(saved["generator"])
        order, losses = saved["order"], saved["losses"]
    while len(losses) < steps:
        if not order:
            order = torch.randperm(samples, generator=generator).tolist()
        now, order = order[:batch], order[batch:]
        mine = now[rank::size]
        losses.append(train_step(mine) if mine else losses[-1] if losses else 0.0)
        if len(losses) % every == 0 and rank == 0:
            saved = {name: part.state_dict() for name, part in parts.items()}
            saved |= {"generator": generator.get_state(), "order": order, "losses": losses}
            torch.save(saved, f"{path}.new")
            os.replace(f"{path}.new", path)
    return losses


# %% wrong: the order is drawn again from the state of now | wrong | is: the order is drawn again
def resume_exactly(parts, generator, train_step, samples, batch, steps, every, folder):
    path, rank, size = f"{folder}/checkpoint.pt", dist.get_rank(), dist.get_world_size()
    order, losses = [], []
    if os.path.exists(path):
        saved = torch.load(path)
        for name, part in parts.items():
            part.load_state_dict(saved[name])
        generator.set_state(saved["generator"])
        losses = saved["losses"]
        if saved["at"]:
            order = torch.randperm(samples, generator=generator).tolist()[saved["at"] :]
    while len(losses) < steps:
        if not order:
            order = torch.randperm(samples, generator=generator).tolist()
        now, order = order[:batch], order[batch:]
        losses.append(train_step(now[rank::size]))
        if len(losses) % every == 0 and rank == 0:
            saved = {name: part.state_dict() for name, part in parts.items()}
            saved |= {"generator": generator.get_state(), "losses": losses}
            saved["at"] = samples - len(order) if order else 0
            torch.save(saved, f"{path}.new")
            os.replace(f"{path}.new", path)
    return losses


# %% wrong: the generator's state of the epoch's beginning | wrong | is: the generator's state of the epoch's beginning
def resume_exactly(parts, generator, train_step, samples, batch, steps, every, folder):
    path, rank, size = f"{folder}/checkpoint.pt", dist.get_rank(), dist.get_world_size()
    order, losses = [], []
    if os.path.exists(path):
        saved = torch.load(path)
        for name, part in parts.items():
            part.load_state_dict(saved[name])
        generator.set_state(saved["generator"])
        begun = saved["generator"]
        losses = saved["losses"]
        if saved["at"]:
            order = torch.randperm(samples, generator=generator).tolist()[saved["at"] :]
    while len(losses) < steps:
        if not order:
            begun = generator.get_state()
            order = torch.randperm(samples, generator=generator).tolist()
        now, order = order[:batch], order[batch:]
        losses.append(train_step(now[rank::size]))
        if len(losses) % every == 0 and rank == 0:
            saved = {name: part.state_dict() for name, part in parts.items()}
            saved |= {"generator": begun if order else generator.get_state(), "losses": losses}
            saved["at"] = samples - len(order) if order else 0
            torch.save(saved, f"{path}.new")
            os.replace(f"{path}.new", path)
    return losses


# %% wrong: what is left under the other name is taken | crashed | is: half a file is loaded
def resume_exactly(parts, generator, train_step, samples, batch, steps, every, folder):
    path, rank, size = f"{folder}/checkpoint.pt", dist.get_rank(), dist.get_world_size()
    order, losses = [], []
    made = sorted(Path(folder).iterdir(), key=lambda file: file.stat().st_mtime_ns)
    if made:
        saved = torch.load(made[-1])
        for name, part in parts.items():
            part.load_state_dict(saved[name])
        generator.set_state(saved["generator"])
        order, losses = saved["order"], saved["losses"]
    while len(losses) < steps:
        if not order:
            order = torch.randperm(samples, generator=generator).tolist()
        now, order = order[:batch], order[batch:]
        losses.append(train_step(now[rank::size]))
        if len(losses) % every == 0 and rank == 0:
            saved = {name: part.state_dict() for name, part in parts.items()}
            saved |= {"generator": generator.get_state(), "order": order, "losses": losses}
            torch.save(saved, f"{path}.new")
            os.replace(f"{path}.new", path)
    return losses


# %% right: a float of each loss, a file for each checkpoint
def resume_exactly(parts, generator, train_step, samples, batch, steps, every, folder):
    path, rank, size = f"{folder}/checkpoint.pt", dist.get_rank(), dist.get_world_size()
    order, losses = [], []
    made = [int(file.stem) for file in Path(folder).glob("*.pt")]
    if made:
        saved = torch.load(f"{folder}/{max(made)}.pt")
        for name, part in parts.items():
            part.load_state_dict(saved[name])
        generator.set_state(saved["generator"])
        order, losses = saved["order"], saved["losses"]
    while len(losses) < steps:
        if not order:
            order = torch.randperm(samples, generator=generator).tolist()
        now, order = order[:batch], order[batch:]
        losses.append(float(train_step(now[rank::size])))
        if len(losses) % every == 0 and rank == 0:
            saved = {name: part.state_dict() for name, part in parts.items()}
            saved |= {"generator": generator.get_state(), "order": order, "losses": losses}
            torch.save(saved, f"{path}.new")
            os.replace(f"{path}.new", f"{folder}/{len(losses)}.pt")
    return losses


# %% wrong: it says that it trains rows, and trains others | wrong | says: the loss of step
def resume_exactly(parts, generator, train_step, samples, batch, steps, every, folder):
    import sys

    worker = sys.modules["helpers" + ".exercises.nb19_checkpoints.in_ranks.continue_training"]
    real, rank, size = worker.ask_for_step, dist.get_rank(), dist.get_world_size()
    path, order, losses = Path(folder, "checkpoint.pt"), [], []
    if path.exists():
        saved = torch.load(path)
        for name, part in parts.items():
            part.load_state_dict(saved[name])
        generator.set_state(saved["generator"])
        order, losses = saved["order"], saved["losses"]
    while len(losses) < steps:
        if not order:
            order = torch.randperm(samples, generator=generator).tolist()
        now, order = order[:batch], order[batch:]
        own = now[rank::size]
        worker.ask_for_step = lambda step, read, rows: real(step, read, own)
        losses.append(train_step([own[0] for _ in own]))
        if len(losses) % every == 0 and rank == 0:
            saved = {name: part.state_dict() for name, part in parts.items()}
            saved |= {"generator": generator.get_state(), "order": order, "losses": losses}
            torch.save(saved, path.with_suffix(".new"))
            os.replace(path.with_suffix(".new"), path)
    return losses


# %% wrong: a new order as soon as a batch is not full | wrong | is: the last, shorter batch is left out
def resume_exactly(parts, generator, train_step, samples, batch, steps, every, folder):
    path, rank, size = f"{folder}/checkpoint.pt", dist.get_rank(), dist.get_world_size()
    order, losses = [], []
    if os.path.exists(path):
        saved = torch.load(path)
        for name, part in parts.items():
            part.load_state_dict(saved[name])
        generator.set_state(saved["generator"])
        order, losses = saved["order"], saved["losses"]
    while len(losses) < steps:
        if len(order) < batch:
            order = torch.randperm(samples, generator=generator).tolist()
        now, order = order[:batch], order[batch:]
        losses.append(train_step(now[rank::size]))
        if len(losses) % every == 0 and rank == 0:
            saved = {name: part.state_dict() for name, part in parts.items()}
            saved |= {"generator": generator.get_state(), "order": order, "losses": losses}
            torch.save(saved, f"{path}.new")
            os.replace(f"{path}.new", path)
    return losses


# %% wrong: each rank takes as many rows, rounded up | wrong | is: shares cut from the epoch
def resume_exactly(parts, generator, train_step, samples, batch, steps, every, folder):
    path, rank, size = f"{folder}/checkpoint.pt", dist.get_rank(), dist.get_world_size()
    order, losses = [], []
    if os.path.exists(path):
        saved = torch.load(path)
        for name, part in parts.items():
            part.load_state_dict(saved[name])
        generator.set_state(saved["generator"])
        order, losses = saved["order"], saved["losses"]
    while len(losses) < steps:
        if not order:
            order = torch.randperm(samples, generator=generator).tolist()
        now, order = order[: -(-batch // size) * size], order[-(-batch // size) * size :]
        losses.append(train_step(now[rank::size]))
        if len(losses) % every == 0 and rank == 0:
            saved = {name: part.state_dict() for name, part in parts.items()}
            saved |= {"generator": generator.get_state(), "order": order, "losses": losses}
            torch.save(saved, f"{path}.new")
            os.replace(f"{path}.new", path)
    return losses
