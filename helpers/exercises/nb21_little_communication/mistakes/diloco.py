# %% never meets
# The weights are as if the ranks had never met. After steps {every}, {twice}, ... what the outer step
# gives goes into the model; and what it starts from is a clone of the weights: else there is no
# difference.
def diloco(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum):
    kept = [p.detach().clone() for p in model.parameters()]
    outer = torch.optim.SGD(kept, lr=outer_lr, momentum=momentum, nesterov=True)
    for step in range(1, len(x) // batch_size + 1):
        own = slice((step - 1) * batch_size, step * batch_size)
        inner.zero_grad()
        torch.nn.functional.cross_entropy(model(x[own]), y[own]).backward()
        inner.step()
        if False:
            for k, p in zip(kept, model.parameters()):
                k.grad = k - p.data
                dist.all_reduce(k.grad, op=dist.ReduceOp.AVG)
            outer.step()
            for k, p in zip(kept, model.parameters()):
                p.data.copy_(k)


# %% local SGD
# This is the plain mean of the weights: local SGD. The outer optimizer goes {outer_lr} of the way, with
# momentum {momentum}.
def diloco(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum):
    kept = [p.detach().clone() for p in model.parameters()]
    outer = torch.optim.SGD(kept, lr=1.0)
    for step in range(1, len(x) // batch_size + 1):
        own = slice((step - 1) * batch_size, step * batch_size)
        inner.zero_grad()
        torch.nn.functional.cross_entropy(model(x[own]), y[own]).backward()
        inner.step()
        if step % every == 0:
            for k, p in zip(kept, model.parameters()):
                k.grad = k - p.data
                dist.all_reduce(k.grad, op=dist.ReduceOp.AVG)
            outer.step()
            for k, p in zip(kept, model.parameters()):
                p.data.copy_(k)


# %% the wrong way
# The outer step goes the wrong way: its gradient is the weights of the last meeting minus those of now.
def diloco(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum):
    kept = [p.detach().clone() for p in model.parameters()]
    outer = torch.optim.SGD(kept, lr=outer_lr, momentum=momentum, nesterov=True)
    for step in range(1, len(x) // batch_size + 1):
        own = slice((step - 1) * batch_size, step * batch_size)
        inner.zero_grad()
        torch.nn.functional.cross_entropy(model(x[own]), y[own]).backward()
        inner.step()
        if step % every == 0:
            for k, p in zip(kept, model.parameters()):
                k.grad = p.data - k
                dist.all_reduce(k.grad, op=dist.ReduceOp.AVG)
            outer.step()
            for k, p in zip(kept, model.parameters()):
                p.data.copy_(k)


# %% sums
# The ranks' differences are averaged, not added up.
def diloco(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum):
    kept = [p.detach().clone() for p in model.parameters()]
    outer = torch.optim.SGD(kept, lr=outer_lr, momentum=momentum, nesterov=True)
    for step in range(1, len(x) // batch_size + 1):
        own = slice((step - 1) * batch_size, step * batch_size)
        inner.zero_grad()
        torch.nn.functional.cross_entropy(model(x[own]), y[own]).backward()
        inner.step()
        if step % every == 0:
            for k, p in zip(kept, model.parameters()):
                k.grad = k - p.data
                dist.all_reduce(k.grad)
            outer.step()
            for k, p in zip(kept, model.parameters()):
                p.data.copy_(k)


# %% a new outer optimizer each time
# The outer momentum is lost between meetings: make the outer optimizer once, before the first step.
def diloco(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum):
    kept = [p.detach().clone() for p in model.parameters()]
    outer = torch.optim.SGD(kept, lr=outer_lr, momentum=momentum, nesterov=True)
    for step in range(1, len(x) // batch_size + 1):
        own = slice((step - 1) * batch_size, step * batch_size)
        inner.zero_grad()
        torch.nn.functional.cross_entropy(model(x[own]), y[own]).backward()
        inner.step()
        if step % every == 0:
            for k, p in zip(kept, model.parameters()):
                k.grad = k - p.data
                dist.all_reduce(k.grad, op=dist.ReduceOp.AVG)
            outer = torch.optim.SGD(kept, lr=outer_lr, momentum=momentum, nesterov=True)
            outer.step()
            for k, p in zip(kept, model.parameters()):
                p.data.copy_(k)


# %% no momentum
# The outer optimizer has no momentum here; {momentum} is wanted.
def diloco(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum):
    kept = [p.detach().clone() for p in model.parameters()]
    outer = torch.optim.SGD(kept, lr=outer_lr)
    for step in range(1, len(x) // batch_size + 1):
        own = slice((step - 1) * batch_size, step * batch_size)
        inner.zero_grad()
        torch.nn.functional.cross_entropy(model(x[own]), y[own]).backward()
        inner.step()
        if step % every == 0:
            for k, p in zip(kept, model.parameters()):
                k.grad = k - p.data
                dist.all_reduce(k.grad, op=dist.ReduceOp.AVG)
            outer.step()
            for k, p in zip(kept, model.parameters()):
                p.data.copy_(k)


# %% no Nesterov
# This is plain momentum; Nesterov's is wanted: `nesterov=True`.
def diloco(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum):
    kept = [p.detach().clone() for p in model.parameters()]
    outer = torch.optim.SGD(kept, lr=outer_lr, momentum=momentum)
    for step in range(1, len(x) // batch_size + 1):
        own = slice((step - 1) * batch_size, step * batch_size)
        inner.zero_grad()
        torch.nn.functional.cross_entropy(model(x[own]), y[own]).backward()
        inner.step()
        if step % every == 0:
            for k, p in zip(kept, model.parameters()):
                k.grad = k - p.data
                dist.all_reduce(k.grad, op=dist.ReduceOp.AVG)
            outer.step()
            for k, p in zip(kept, model.parameters()):
                p.data.copy_(k)


# %% an outer optimizer of the model's own weights
# The outer step starts from the weights of the last meeting, the same on all ranks; here it starts from
# the rank's own, which have moved already.
def diloco(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum):
    kept = [p.detach().clone() for p in model.parameters()]
    outer = torch.optim.SGD(model.parameters(), lr=outer_lr, momentum=momentum, nesterov=True)
    for step in range(1, len(x) // batch_size + 1):
        own = slice((step - 1) * batch_size, step * batch_size)
        inner.zero_grad()
        torch.nn.functional.cross_entropy(model(x[own]), y[own]).backward()
        inner.step()
        if step % every == 0:
            for k, p in zip(kept, model.parameters()):
                p.grad = k - p.data
                dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
            outer.step()
            for k, p in zip(kept, model.parameters()):
                k.copy_(p.data)


# %% counts from 0
# Count the steps from 1: the ranks meet after steps {every}, {twice}, ... and at no other time.
def diloco(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum):
    kept = [p.detach().clone() for p in model.parameters()]
    outer = torch.optim.SGD(kept, lr=outer_lr, momentum=momentum, nesterov=True)
    for step in range(1, len(x) // batch_size + 1):
        own = slice((step - 1) * batch_size, step * batch_size)
        inner.zero_grad()
        torch.nn.functional.cross_entropy(model(x[own]), y[own]).backward()
        inner.step()
        if (step - 1) % every == 0:
            for k, p in zip(kept, model.parameters()):
                k.grad = k - p.data
                dist.all_reduce(k.grad, op=dist.ReduceOp.AVG)
            outer.step()
            for k, p in zip(kept, model.parameters()):
                p.data.copy_(k)


# %% the inner optimizer starts anew
# The inner optimizer starts anew after a meeting: its state stays, each rank's own.
def diloco(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum):
    kept = [p.detach().clone() for p in model.parameters()]
    outer = torch.optim.SGD(kept, lr=outer_lr, momentum=momentum, nesterov=True)
    for step in range(1, len(x) // batch_size + 1):
        own = slice((step - 1) * batch_size, step * batch_size)
        inner.zero_grad()
        torch.nn.functional.cross_entropy(model(x[own]), y[own]).backward()
        inner.step()
        if step % every == 0:
            for k, p in zip(kept, model.parameters()):
                k.grad = k - p.data
                dist.all_reduce(k.grad, op=dist.ReduceOp.AVG)
            outer.step()
            for k, p in zip(kept, model.parameters()):
                p.data.copy_(k)
            inner.state.clear()


# %% the weights are not handed back
# The weights are as if the ranks had never met. After steps {every}, {twice}, ... what the outer step
# gives goes into the model; and what it starts from is a clone of the weights: else there is no
# difference.
def diloco(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum):
    kept = [p.detach().clone() for p in model.parameters()]
    outer = torch.optim.SGD(kept, lr=outer_lr, momentum=momentum, nesterov=True)
    for step in range(1, len(x) // batch_size + 1):
        own = slice((step - 1) * batch_size, step * batch_size)
        inner.zero_grad()
        torch.nn.functional.cross_entropy(model(x[own]), y[own]).backward()
        inner.step()
        if step % every == 0:
            for k, p in zip(kept, model.parameters()):
                k.grad = k - p.data
                dist.all_reduce(k.grad, op=dist.ReduceOp.AVG)
            outer.step()
