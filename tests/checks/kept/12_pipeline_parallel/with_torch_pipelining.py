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


# %% wrong: no loss function | wrong | says: Without a loss_fn


# %% wrong: by hand | wrong | says: Build a PipelineStage, give it to Schedule1F1B
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


# %% wrong: gradients are not scaled | wrong | says: divides gradients by the number of microbatches already
def with_torch_pipelining(rank, world_size, layers, microbatches, loss_fn, x, y):
    return run(rank, world_size, layers, microbatches, loss_fn, x, y, scale_grads=False)


# %% wrong: the mean of the losses | wrong | says: One loss for each microbatch
def with_torch_pipelining(rank, world_size, layers, microbatches, loss_fn, x, y):
    losses = run(rank, world_size, layers, microbatches, loss_fn, x, y)
    return None if losses is None else [torch.stack(losses).mean()]
