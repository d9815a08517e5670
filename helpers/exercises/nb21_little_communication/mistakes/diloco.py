from torch.nn.functional import cross_entropy


def copies(model):
    return [p.detach().clone() for p in model.parameters()]


def nesterov(weights, outer_lr, momentum):
    return torch.optim.SGD(weights, lr=outer_lr, momentum=momentum, nesterov=True)


def trained_steps(model, inner, x, y, batch_size):
    """Train on one batch after the other. Yield how many steps are done, after each."""
    for step in range(1, len(x) // batch_size + 1):
        own = slice((step - 1) * batch_size, step * batch_size)
        inner.zero_grad()
        cross_entropy(model(x[own]), y[own]).backward()
        inner.step()
        yield step


def meet(model, kept, outer):
    for k, p in zip(kept, model.parameters()):
        k.grad = k - p.data
        dist.all_reduce(k.grad, op=dist.ReduceOp.AVG)
    outer.step()
    hand_back(model, kept)


def hand_back(model, kept):
    for k, p in zip(kept, model.parameters()):
        p.data.copy_(k)


# %% never meets
# These are the weights of ranks that never synchronize. After steps {every}, {twice}, ... copy the result
# of the outer step into the model. It starts from a clone of the weights; without `clone()` the difference
# is always zero.
def diloco(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum):
    for _ in trained_steps(model, inner, x, y, batch_size):
        pass


# %% local SGD
# This is the plain mean of the weights, as in local SGD. The outer optimizer takes a step of learning rate
# {outer_lr} with momentum {momentum}.
def diloco(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum):
    kept = copies(model)
    outer = torch.optim.SGD(kept, lr=1.0)
    for step in trained_steps(model, inner, x, y, batch_size):
        if step % every == 0:
            meet(model, kept, outer)


# %% the wrong way
# The outer step goes the wrong way. Its gradient is the weights of the last synchronization minus the weights now.
def diloco(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum):
    kept = copies(model)
    outer = nesterov(kept, outer_lr, momentum)
    for step in trained_steps(model, inner, x, y, batch_size):
        if step % every == 0:
            for k, p in zip(kept, model.parameters()):
                k.grad = p.data - k
                dist.all_reduce(k.grad, op=dist.ReduceOp.AVG)
            outer.step()
            hand_back(model, kept)


# %% sums
# The ranks' differences are summed. Average them.
def diloco(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum):
    kept = copies(model)
    outer = nesterov(kept, outer_lr, momentum)
    for step in trained_steps(model, inner, x, y, batch_size):
        if step % every == 0:
            for k, p in zip(kept, model.parameters()):
                k.grad = k - p.data
                dist.all_reduce(k.grad)
            outer.step()
            hand_back(model, kept)


# %% a new outer optimizer each time
# The outer momentum is lost between synchronizations. Make the outer optimizer once, before the first step.
def diloco(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum):
    kept = copies(model)
    for step in trained_steps(model, inner, x, y, batch_size):
        if step % every == 0:
            meet(model, kept, nesterov(kept, outer_lr, momentum))


# %% no momentum
# The outer optimizer has no momentum. Pass it momentum={momentum}.
def diloco(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum):
    kept = copies(model)
    outer = torch.optim.SGD(kept, lr=outer_lr)
    for step in trained_steps(model, inner, x, y, batch_size):
        if step % every == 0:
            meet(model, kept, outer)


# %% no Nesterov
# This is plain momentum. Pass nesterov=True to the outer optimizer.
def diloco(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum):
    kept = copies(model)
    outer = torch.optim.SGD(kept, lr=outer_lr, momentum=momentum)
    for step in trained_steps(model, inner, x, y, batch_size):
        if step % every == 0:
            meet(model, kept, outer)


# %% an outer optimizer of the model's own weights
# The outer step starts from the rank's own weights, which have moved already. It starts from the weights of
# the last synchronization, which are the same on all ranks.
def diloco(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum):
    kept = copies(model)
    outer = nesterov(model.parameters(), outer_lr, momentum)
    for step in trained_steps(model, inner, x, y, batch_size):
        if step % every == 0:
            for k, p in zip(kept, model.parameters()):
                p.grad = k - p.data
                dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
            outer.step()
            kept = copies(model)


# %% counts from 0
# The ranks synchronize after the wrong steps. Count the steps from 1: they synchronize after steps {every},
# {twice}, ... and at no other time.
def diloco(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum):
    kept = copies(model)
    outer = nesterov(kept, outer_lr, momentum)
    for step in trained_steps(model, inner, x, y, batch_size):
        if (step - 1) % every == 0:
            meet(model, kept, outer)


# %% the inner optimizer starts anew
# The inner optimizer's state is lost after a synchronization. Keep it: each rank keeps its own.
def diloco(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum):
    kept = copies(model)
    outer = nesterov(kept, outer_lr, momentum)
    for step in trained_steps(model, inner, x, y, batch_size):
        if step % every == 0:
            meet(model, kept, outer)
            inner.state.clear()


# %% the weights are not handed back
# These are the weights of ranks that never synchronize. After steps {every}, {twice}, ... copy the result
# of the outer step into the model. It starts from a clone of the weights; without `clone()` the difference
# is always zero.
def diloco(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum):
    kept = copies(model)
    outer = nesterov(kept, outer_lr, momentum)
    for step in trained_steps(model, inner, x, y, batch_size):
        if step % every == 0:
            for k, p in zip(kept, model.parameters()):
                k.grad = k - p.data
                dist.all_reduce(k.grad, op=dist.ReduceOp.AVG)
            outer.step()


# %% gradients are not cleared
# The gradients of earlier steps are still in `.grad`: call `inner.zero_grad()` before each backward.
def diloco(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum):
    kept = copies(model)
    outer = nesterov(kept, outer_lr, momentum)
    for step in range(1, len(x) // batch_size + 1):
        own = slice((step - 1) * batch_size, step * batch_size)
        cross_entropy(model(x[own]), y[own]).backward()
        inner.step()
        if step % every == 0:
            meet(model, kept, outer)


# %% the difference to the first weights
# The difference is taken to the very first weights each time. After a synchronization keep the new weights.
def diloco(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum):
    first, kept = copies(model), copies(model)
    outer = nesterov(kept, outer_lr, momentum)
    for step in trained_steps(model, inner, x, y, batch_size):
        if step % every == 0:
            for k, f, p in zip(kept, first, model.parameters()):
                k.grad = f - p.data
                dist.all_reduce(k.grad, op=dist.ReduceOp.AVG)
            outer.step()
            hand_back(model, kept)


# %% meets at the end, too
# The ranks also synchronize after the steps that are left over at the end. They synchronize after steps
# {every}, {twice}, ... and at no other time.
def diloco(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum):
    kept = copies(model)
    outer = nesterov(kept, outer_lr, momentum)
    for step in trained_steps(model, inner, x, y, batch_size):
        if step % every == 0 or step == len(x) // batch_size:
            meet(model, kept, outer)
