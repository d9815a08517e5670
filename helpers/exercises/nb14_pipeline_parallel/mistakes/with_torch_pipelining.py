from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe


# %% GPipe
# This is another schedule. Make the same call with Schedule1F1B.
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


# %% no loss function
# No gradient was computed: without a loss function a schedule runs forward only. Pass loss_fn=loss_fn to
# Schedule1F1B.
def with_torch_pipelining(rank, world_size, layers, microbatches, loss_fn, x, y):
    stage = PipelineStage(layers, rank, world_size, torch.device("cpu"))
    schedule = Schedule1F1B(stage, microbatches)
    if rank == 0:
        schedule.step(x)
    else:
        schedule.step()


# %% the output instead of the losses
# This is not the list of losses. Pass a list to step() as `losses`; it then holds one loss for each
# microbatch, in order. step() itself returns the outputs.
def with_torch_pipelining(rank, world_size, layers, microbatches, loss_fn, x, y):
    stage = PipelineStage(layers, rank, world_size, torch.device("cpu"))
    schedule = Schedule1F1B(stage, microbatches, loss_fn=loss_fn)
    if rank == 0:
        return schedule.step(x)
    if rank == world_size - 1:
        return schedule.step(target=y)
    return schedule.step()


# %% losses on every rank
# Ranks other than the last return something. Return the losses where rank == world_size - 1, and None
# elsewhere.
def with_torch_pipelining(rank, world_size, layers, microbatches, loss_fn, x, y):
    stage = PipelineStage(layers, rank, world_size, torch.device("cpu"))
    schedule = Schedule1F1B(stage, microbatches, loss_fn=loss_fn)
    losses = []
    if rank == 0:
        schedule.step(x)
    else:
        schedule.step(target=y, losses=losses)
    return losses


# %% the gradients divided once more
# The gradients are divided by the number of microbatches twice: the schedule divides them already
# (scale_grads). Pass it loss_fn as it is.
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


# %% a loop over the microbatches around step
# step() ran more than once. It takes the whole batch and splits it into microbatches itself: call it once.
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


# %% by hand
# No schedule of torch.distributed.pipelining ran a step. Build a PipelineStage, pass it to Schedule1F1B,
# and call its step().
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


# %% what step returns instead of the losses
# This is not the list of losses. Pass a list to step() as `losses`; it then holds one loss for each
# microbatch, in order. step() itself returns the outputs.
def with_torch_pipelining(rank, world_size, layers, microbatches, loss_fn, x, y):
    stage = PipelineStage(layers, rank, world_size, torch.device("cpu"))
    plan, losses = Schedule1F1B(stage, microbatches, loss_fn=loss_fn), []
    if rank == 0:
        plan.step(x)
    elif rank == world_size - 1:
        return plan.step(target=y, losses=losses)
    else:
        plan.step()


# %% gradients are not scaled
# The gradients are not divided by the number of microbatches. The schedule does that by default: leave
# scale_grads as it is.
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


# %% the mean of the losses
# This is one number for all microbatches. Return the list, with one loss for each.
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


# %% as many microbatches as ranks
# The batch is split into a different number of microbatches. Pass `microbatches` to Schedule1F1B.
def with_torch_pipelining(rank, world_size, layers, microbatches, loss_fn, x, y):
    stage = PipelineStage(layers, rank, world_size, torch.device("cpu"))
    schedule, losses = Schedule1F1B(stage, world_size, loss_fn=loss_fn), []
    if rank == 0:
        schedule.step(x)
    elif rank == world_size - 1:
        schedule.step(target=y, losses=losses)
        return losses
    else:
        schedule.step()
