from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe


# %% right: three kinds of step
def with_torch_pipelining(rank, world_size, layers, microbatches, loss_fn, x, y):
    stage = PipelineStage(layers, rank, world_size, torch.device("cpu"))
    schedule = Schedule1F1B(stage, microbatches, loss_fn=loss_fn)
    losses = []
    if rank == 0:
        schedule.step(x)
    elif rank == world_size - 1:
        schedule.step(target=y, losses=losses)
    else:
        schedule.step()
    return losses if rank == world_size - 1 else None


# %% right: keyword arguments put together, a tensor of losses
def with_torch_pipelining(rank, world_size, layers, microbatches, loss_fn, x, y):
    import torch.distributed.pipelining as pp

    stage = pp.PipelineStage(
        submodule=layers, stage_index=rank, num_stages=world_size, device=torch.device("cpu")
    )
    found = []
    last = stage.is_last
    given = [x] if stage.is_first else []
    options = {"target": y, "losses": found} if last else {}
    pp.Schedule1F1B(stage, microbatches, loss_fn).step(*given, **options)
    return torch.stack(found) if last else None


# %% right: floats
def with_torch_pipelining(rank, world_size, layers, microbatches, loss_fn, x, y):
    stage = PipelineStage(layers, rank, world_size, torch.device("cpu"))
    schedule = Schedule1F1B(stage, n_microbatches=microbatches, loss_fn=loss_fn)
    if rank == 0:
        schedule.step(x)
        return
    losses = []
    schedule.step(target=y, losses=losses)
    if rank == world_size - 1:
        return [loss.item() for loss in losses]


# %% right: the same call on every rank, with None where there is nothing
def with_torch_pipelining(rank, world_size, layers, microbatches, loss_fn, x, y):
    stage = PipelineStage(layers, rank, world_size, torch.device("cpu"))
    schedule = Schedule1F1B(stage, microbatches, loss_fn=loss_fn)
    losses = []
    schedule.step(x, target=y, losses=losses)
    return losses or None


# %% wrong: GPipe | wrong | says: one step of Schedule1F1B is wanted
def with_torch_pipelining(rank, world_size, layers, microbatches, loss_fn, x, y):
    stage = PipelineStage(layers, rank, world_size, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, microbatches, loss_fn=loss_fn)
    losses = []
    if rank == 0:
        schedule.step(x)
    elif rank == world_size - 1:
        schedule.step(target=y, losses=losses)
    else:
        schedule.step()
    return losses if rank == world_size - 1 else None


# %% wrong: no loss function | wrong | says: Without a loss_fn
def with_torch_pipelining(rank, world_size, layers, microbatches, loss_fn, x, y):
    stage = PipelineStage(layers, rank, world_size, torch.device("cpu"))
    schedule = Schedule1F1B(stage, microbatches)
    if rank == 0:
        schedule.step(x)
    else:
        schedule.step()


# %% wrong: the output instead of the losses | wrong | says: What step.. returns are the outputs
def with_torch_pipelining(rank, world_size, layers, microbatches, loss_fn, x, y):
    stage = PipelineStage(layers, rank, world_size, torch.device("cpu"))
    schedule = Schedule1F1B(stage, microbatches, loss_fn=loss_fn)
    if rank == 0:
        return schedule.step(x)
    if rank == world_size - 1:
        return schedule.step(target=y)
    return schedule.step()


# %% wrong: losses on every rank | wrong | says: None on all other ranks
def with_torch_pipelining(rank, world_size, layers, microbatches, loss_fn, x, y):
    stage = PipelineStage(layers, rank, world_size, torch.device("cpu"))
    schedule = Schedule1F1B(stage, microbatches, loss_fn=loss_fn)
    losses = []
    if rank == 0:
        schedule.step(x)
    else:
        schedule.step(target=y, losses=losses)
    return losses


# %% wrong: the gradients divided once more | wrong | says: divides gradients by the number of microbatches already
def with_torch_pipelining(rank, world_size, layers, microbatches, loss_fn, x, y):
    stage = PipelineStage(layers, rank, world_size, torch.device("cpu"))
    schedule = Schedule1F1B(
        stage, microbatches, loss_fn=lambda out, target: loss_fn(out, target) / microbatches
    )
    losses = []
    if rank == 0:
        schedule.step(x)
    elif rank == world_size - 1:
        schedule.step(target=y, losses=losses)
    else:
        schedule.step()
    return losses if rank == world_size - 1 else None


# %% wrong: a loop over the microbatches around step | wrong | says: into microbatches by itself
def with_torch_pipelining(rank, world_size, layers, microbatches, loss_fn, x, y):
    stage = PipelineStage(layers, rank, world_size, torch.device("cpu"))
    schedule = Schedule1F1B(stage, microbatches, loss_fn=loss_fn)
    losses = []
    for _ in range(2):
        if rank == 0:
            schedule.step(x)
        elif rank == world_size - 1:
            schedule.step(target=y, losses=losses)
        else:
            schedule.step()
    return losses if rank == world_size - 1 else None


# %% wrong: by hand | wrong | says: Build a PipelineStage, give it to Schedule1F1B
from torch.distributed.pipelining import PipelineStage, Schedule1F1B


def run(rank, world_size, layers, microbatches, loss_fn, x, y, **options):
    stage = PipelineStage(layers, rank, world_size, torch.device("cpu"))
    plan, losses = Schedule1F1B(stage, microbatches, loss_fn=loss_fn, **options), []
    if rank == 0:
        plan.step(x)
    elif rank == world_size - 1:
        plan.step(target=y, losses=losses)
    else:
        plan.step()
    return losses if rank == world_size - 1 else None


def with_torch_pipelining(rank, world_size, layers, microbatches, loss_fn, x, y):
    width = layers[0].in_features
    losses, kept = [], []
    for i in range(microbatches):
        count = torch.tensor([len(x) // microbatches if rank == 0 else 0])
        if rank:
            dist.recv(count, rank - 1)
            a = torch.empty(int(count), width, dtype=layers[0].weight.dtype)
            dist.recv(a, rank - 1)
        else:
            a = x.chunk(microbatches)[i]
        a = a.detach().clone().requires_grad_()
        out = layers(a)
        if rank < world_size - 1:
            dist.send(count, rank + 1)
            dist.send(out.detach(), rank + 1)
        else:
            losses.append(loss_fn(out, y.chunk(microbatches)[i]))
        kept.append((a, out))
    for i, (a, out) in enumerate(kept):
        if rank < world_size - 1:
            g = torch.empty_like(out)
            dist.recv(g, rank + 1)
            out.backward(g)
        else:
            (losses[i] / microbatches).backward()
        if rank:
            dist.send(a.grad, rank - 1)
    return losses if rank == world_size - 1 else None


# %% wrong: what step returns instead of the losses | wrong | says: What step\(\) returns are the outputs
def with_torch_pipelining(rank, world_size, layers, microbatches, loss_fn, x, y):
    stage = PipelineStage(layers, rank, world_size, torch.device("cpu"))
    plan, losses = Schedule1F1B(stage, microbatches, loss_fn=loss_fn), []
    if rank == 0:
        plan.step(x)
    elif rank == world_size - 1:
        return plan.step(target=y, losses=losses)
    else:
        plan.step()


# %% wrong: gradients are not scaled | wrong | says: divides gradients by the number of microbatches already
from torch.distributed.pipelining import PipelineStage, Schedule1F1B


def run(rank, world_size, layers, microbatches, loss_fn, x, y, **options):
    stage = PipelineStage(layers, rank, world_size, torch.device("cpu"))
    plan, losses = Schedule1F1B(stage, microbatches, loss_fn=loss_fn, **options), []
    if rank == 0:
        plan.step(x)
    elif rank == world_size - 1:
        plan.step(target=y, losses=losses)
    else:
        plan.step()
    return losses if rank == world_size - 1 else None


def with_torch_pipelining(rank, world_size, layers, microbatches, loss_fn, x, y):
    return run(rank, world_size, layers, microbatches, loss_fn, x, y, scale_grads=False)


# %% wrong: the mean of the losses | wrong | says: One loss for each microbatch
from torch.distributed.pipelining import PipelineStage, Schedule1F1B


def run(rank, world_size, layers, microbatches, loss_fn, x, y, **options):
    stage = PipelineStage(layers, rank, world_size, torch.device("cpu"))
    plan, losses = Schedule1F1B(stage, microbatches, loss_fn=loss_fn, **options), []
    if rank == 0:
        plan.step(x)
    elif rank == world_size - 1:
        plan.step(target=y, losses=losses)
    else:
        plan.step()
    return losses if rank == world_size - 1 else None


def with_torch_pipelining(rank, world_size, layers, microbatches, loss_fn, x, y):
    losses = run(rank, world_size, layers, microbatches, loss_fn, x, y)
    return None if losses is None else [torch.stack(losses).mean()]
