# %% never meets
# These are the weights of ranks that never meet. After steps {every}, {twice}, ... copy the result of the
# outer step into the model. It starts from a clone of the weights; without `clone()` the difference is
# always zero.
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
# This is the plain mean of the weights, as in local SGD. The outer optimizer takes a step of learning rate
# {outer_lr} with momentum {momentum}.
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
# The outer step goes the wrong way. Its gradient is the weights of the last meeting minus the weights now.
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
# The ranks' differences are summed. Average them.
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
# The outer momentum is lost between meetings. Make the outer optimizer once, before the first step.
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
# The outer optimizer has no momentum. Pass it momentum={momentum}.
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
# This is plain momentum. Pass nesterov=True to the outer optimizer.
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
# The outer step starts from the rank's own weights, which have moved already. It starts from the weights of
# the last meeting, which are the same on all ranks.
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
# The ranks meet after the wrong steps. Count the steps from 1: they meet after steps {every}, {twice}, ...
# and at no other time.
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
# The inner optimizer's state is lost after a meeting. Keep it: each rank keeps its own.
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
# These are the weights of ranks that never meet. After steps {every}, {twice}, ... copy the result of the
# outer step into the model. It starts from a clone of the weights; without `clone()` the difference is
# always zero.
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


# %% gradients are not cleared
# The gradients of earlier steps are still in `.grad`: call `inner.zero_grad()` before each backward.
def diloco(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum):
    kept = [p.detach().clone() for p in model.parameters()]
    outer = torch.optim.SGD(kept, lr=outer_lr, momentum=momentum, nesterov=True)
    for step in range(1, len(x) // batch_size + 1):
        own = slice((step - 1) * batch_size, step * batch_size)
        pass
        torch.nn.functional.cross_entropy(model(x[own]), y[own]).backward()
        inner.step()
        if step % every == 0:
            for k, p in zip(kept, model.parameters()):
                k.grad = k - p.data
                dist.all_reduce(k.grad, op=dist.ReduceOp.AVG)
            outer.step()
            for k, p in zip(kept, model.parameters()):
                p.data.copy_(k)


# %% the difference to the first weights
# The difference is taken to the very first weights each time. After a meeting keep the new weights.
def diloco(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum):
    first = [p.detach().clone() for p in model.parameters()]
    kept = [p.clone() for p in first]
    outer = torch.optim.SGD(kept, lr=outer_lr, momentum=momentum, nesterov=True)
    for step in range(1, len(x) // batch_size + 1):
        own = slice((step - 1) * batch_size, step * batch_size)
        inner.zero_grad()
        torch.nn.functional.cross_entropy(model(x[own]), y[own]).backward()
        inner.step()
        if step % every == 0:
            for k, f, p in zip(kept, first, model.parameters()):
                k.grad = f - p.data
                dist.all_reduce(k.grad, op=dist.ReduceOp.AVG)
            outer.step()
            for k, p in zip(kept, model.parameters()):
                p.data.copy_(k)


# %% meets at the end, too
# The ranks also meet after steps that are left over at the end. They meet after steps {every}, {twice}, ...
# and at no other time.
def diloco(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum):
    kept = [p.detach().clone() for p in model.parameters()]
    outer = torch.optim.SGD(kept, lr=outer_lr, momentum=momentum, nesterov=True)
    for step in range(1, len(x) // batch_size + 1):
        own = slice((step - 1) * batch_size, step * batch_size)
        inner.zero_grad()
        torch.nn.functional.cross_entropy(model(x[own]), y[own]).backward()
        inner.step()
        if step % every == 0 or step == len(x) // batch_size:
            for k, p in zip(kept, model.parameters()):
                k.grad = k - p.data
                dist.all_reduce(k.grad, op=dist.ReduceOp.AVG)
            outer.step()
            for k, p in zip(kept, model.parameters()):
                p.data.copy_(k)
