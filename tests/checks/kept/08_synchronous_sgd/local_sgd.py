from torch.nn.functional import cross_entropy


# %% wrong: the sum of the weights | wrong | says: divide it by the world size


# %% wrong: averages the gradients every so many steps, not the weights | wrong | says: no gradient is averaged


# %% wrong: gradients averaged in every step | wrong | says: no gradient is averaged


# %% wrong: once more at the end | wrong | says: steps left over at the end stay


# %% wrong: averaged after every step | wrong | says: The ranks meet after every step


# %% right: a while loop, the mean in a buffer, AVG under no_grad
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    step = 0
    while (step + 1) * batch_size <= len(x):
        batch = slice(step * batch_size, (step + 1) * batch_size)
        optimizer.zero_grad(set_to_none=False)
        torch.nn.CrossEntropyLoss()(model(x[batch]), y[batch]).backward()
        optimizer.step()
        step += 1
        if step % every:
            continue
        with torch.no_grad():
            for p in model.parameters():
                mean = p.clone()
                dist.all_reduce(mean, op=dist.ReduceOp.AVG)
                p.copy_(mean)


# %% right: all in flight, then all divided
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    for step in range(1, len(x) // batch_size + 1):
        own = slice((step - 1) * batch_size, step * batch_size)
        model.zero_grad()
        cross_entropy(model(x[own]), y[own]).backward()
        optimizer.step()
        if step % every == 0:
            works = [dist.all_reduce(p.data, async_op=True) for p in model.parameters()]
            for work, p in zip(works, model.parameters()):
                work.wait()
                p.data.div_(world_size)


# %% wrong: gradients are never cleared | wrong | says: clear them before each step
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    for step in range(1, len(x) // batch_size + 1):
        own = slice((step - 1) * batch_size, step * batch_size)
        cross_entropy(model(x[own]), y[own]).backward()
        optimizer.step()
        if step % every == 0:
            for p in model.parameters():
                dist.all_reduce(p.data)
                p.data /= world_size


# %% wrong: divides before wait() | wrong | says: never calls wait
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    for step in range(1, len(x) // batch_size + 1):
        own = slice((step - 1) * batch_size, step * batch_size)
        optimizer.zero_grad()
        cross_entropy(model(x[own]), y[own]).backward()
        optimizer.step()
        if step % every == 0:
            for p in model.parameters():
                dist.all_reduce(p.data, async_op=True)
                p.data /= world_size


# %% wrong: gradients and weights averaged | wrong | says: no gradient is averaged
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    for step in range(1, len(x) // batch_size + 1):
        own = slice((step - 1) * batch_size, step * batch_size)
        optimizer.zero_grad()
        cross_entropy(model(x[own]), y[own]).backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
            p.grad /= world_size
        optimizer.step()
        if step % every == 0:
            for p in model.parameters():
                dist.all_reduce(p.data)
                p.data /= world_size
