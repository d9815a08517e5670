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
