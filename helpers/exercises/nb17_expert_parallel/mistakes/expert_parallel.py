class Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, sends, receives):
        ctx.sends, ctx.receives = sends, receives
        arrived = x.new_empty(sum(receives), x.shape[1])
        dist.all_to_all_single(arrived, x.contiguous(), receives, sends)
        return arrived

    @staticmethod
    def backward(ctx, grad):
        returned = grad.new_empty(sum(ctx.sends), grad.shape[1])
        dist.all_to_all_single(returned, grad.contiguous(), ctx.sends, ctx.receives)
        return returned, None, None


def route(
    rank, world_size, x, router, expert,
    undo=True, gated=True, detach=False, skip=False, plain=False, swap=True, minlength=True,
):  # fmt: skip
    gate, choice = (x @ router.T).softmax(1).max(1)
    order = choice.argsort()
    sends = choice.bincount(minlength=world_size if minlength else 0)
    receives = torch.zeros_like(sends)
    dist.all_to_all_single(receives, sends)
    sends, receives = sends.tolist(), receives.tolist()
    exchange = Exchange.apply
    if plain:
        exchange = lambda t, s, r: Exchange.forward(torch.autograd.function.FunctionCtx(), t, s, r)
    arrived = exchange(x[order], sends, receives)
    worked = expert(arrived) if len(arrived) or not skip else torch.empty(0, x.shape[1]).to(x)
    back = exchange(worked, receives, sends) if swap else exchange(worked, sends, receives)
    y = torch.empty_like(back)
    y[order] = back
    if not undo:
        y = back
    return (gate.detach() if detach else gate)[:, None] * y if gated else y


def sent(world_size, x, router):
    gate, choice = (x @ router.T).softmax(1).max(1)
    sends = choice.bincount(minlength=world_size)
    receives = torch.empty_like(sends)
    dist.all_to_all_single(receives, sends)
    return gate, choice.argsort(), sends.tolist(), receives.tolist()


# %% the order is not undone
# The results are in the order in which the tokens were sent. Put each where its token was, `y[order] =
# back`, then multiply by the gates.
def expert_parallel(rank, world_size, x, router, expert):
    return route(rank, world_size, x, router, expert, undo=False)


# %% no gate
# The results are not multiplied by the gates, the probability of each token's expert.
def expert_parallel(rank, world_size, x, router, expert):
    return route(rank, world_size, x, router, expert, gated=False)


# %% the gate is detached
# The router gets no gradient: the gate is detached. Multiply by the probability itself.
def expert_parallel(rank, world_size, x, router, expert):
    return route(rank, world_size, x, router, expert, detach=True)


# %% an expert without tokens is left out | deadlocked
# A rank leaves out an exchange that the others wait for. Every rank makes the same five exchanges, three
# forward and two backward, even without a token. backward makes its call only if the tensor that was
# exchanged has a graph: the expert's output for no rows has one, a new empty tensor has none.
def expert_parallel(rank, world_size, x, router, expert):
    return route(rank, world_size, x, router, expert, skip=True)


# %% counts without minlength | crashed
# The counts do not fit. Does every rank pass one count for each rank (`bincount(minlength=world_size)`),
# and receive as many tokens as the other ranks' counts say?
def expert_parallel(rank, world_size, x, router, expert):
    return route(rank, world_size, x, router, expert, minlength=False)


# %% the lists are not swapped on the way back | crashed
# The sizes do not fit. The first exchange sends by your own counts and receives by the others'; on the way
# back the two lists change places.
def expert_parallel(rank, world_size, x, router, expert):
    return route(rank, world_size, x, router, expert, swap=False)


# %% an expert without tokens is not called
# An expert without tokens is not called, so its weights have no gradient (None): an optimizer would skip
# them, and DDP would report an error. Call the expert with no rows, too.
def expert_parallel(rank, world_size, x, router, expert):
    gate, order, sends, receives = sent(world_size, x, router)
    arrived = Exchange.apply(x[order], sends, receives)
    back = Exchange.apply(expert(arrived) if len(arrived) else arrived, receives, sends)
    y = torch.empty_like(back)
    y[order] = back
    return gate[:, None] * y


# %% a rank that neither has nor gets tokens leaves the way back out | deadlocked
# A rank leaves out an exchange that the others wait for. Every rank makes the same five exchanges, three
# forward and two backward, even without a token. backward makes its call only if the tensor that was
# exchanged has a graph: the expert's output for no rows has one, a new empty tensor has none.
def expert_parallel(rank, world_size, x, router, expert):
    gate, order, sends, receives = sent(world_size, x, router)
    done = expert(Exchange.apply(x[order], sends, receives))
    back = Exchange.apply(done, receives, sends) if sum(sends) + sum(receives) else done
    y = torch.empty_like(back)
    y[order] = back
    return gate[:, None] * y


# %% sorted once more in place of put back
# `back[order]` sorts once more. To undo the order, assign: `y[order] = back`.
def expert_parallel(rank, world_size, x, router, expert):
    gate, order, sends, receives = sent(world_size, x, router)
    arrived = Exchange.apply(x[order], sends, receives)
    return gate[:, None] * Exchange.apply(expert(arrived), receives, sends)[order]


# %% times the gates, then put back
# The gates multiply rows of other tokens: gates are in the order of this rank's tokens, `back` is sorted by
# expert. First `y[order] = back`, then multiply.
def expert_parallel(rank, world_size, x, router, expert):
    gate, order, sends, receives = sent(world_size, x, router)
    arrived = Exchange.apply(x[order], sends, receives)
    back = gate[:, None] * Exchange.apply(expert(arrived), receives, sends)
    y = torch.empty_like(back)
    y[order] = back
    return y


# %% gates are not a column | crashed
# A gate belongs to a whole row. `gate[:, None]` multiplies rows; `gate` multiplies columns.
def expert_parallel(rank, world_size, x, router, expert):
    gate, order, sends, receives = sent(world_size, x, router)
    arrived = Exchange.apply(x[order], sends, receives)
    back = Exchange.apply(expert(arrived), receives, sends)
    y = torch.empty_like(back)
    y[order] = back
    return gate * y


# %% the logit for a gate
# The results are multiplied by the logit. The gate is the probability, after the softmax.
def expert_parallel(rank, world_size, x, router, expert):
    gate, order, sends, receives = sent(world_size, x, router)
    back = Exchange.apply(expert(Exchange.apply(x[order], sends, receives)), receives, sends)
    y = torch.empty_like(back)
    y[order] = back
    return (x @ router.T).max(1).values[:, None] * y


# %% a rank without tokens returns at once | deadlocked
# A rank leaves out an exchange that the others wait for. Every rank makes the same five exchanges, three
# forward and two backward, even without a token. backward makes its call only if the tensor that was
# exchanged has a graph: the expert's output for no rows has one, a new empty tensor has none.
def expert_parallel(rank, world_size, x, router, expert):
    if len(x) == 0:
        return x
    gate, choice = (x @ router.T).softmax(1).max(1)
    order, sends = choice.argsort(), choice.bincount(minlength=world_size)
    receives = torch.empty_like(sends)
    dist.all_to_all_single(receives, sends)
    s, r = sends.tolist(), receives.tolist()
    back = Exchange.apply(expert(Exchange.apply(x[order], s, r)), r, s)
    y = torch.empty_like(back)
    y[order] = back
    return gate[:, None] * y


# %% every token goes to every expert
# Tokens are sent to experts that they did not choose. Token i goes to expert choice[i] only.
def expert_parallel(rank, world_size, x, router, expert):
    gate, choice = (x @ router.T).softmax(1).max(1)
    receives = torch.empty(world_size, dtype=torch.int64)
    dist.all_to_all_single(receives, torch.full((world_size,), len(x)))
    sends, receives = [len(x)] * world_size, receives.tolist()
    arrived = Exchange.apply(x.repeat(world_size, 1), sends, receives)
    every = Exchange.apply(expert(arrived), receives, sends).view(world_size, *x.shape)
    return gate[:, None] * every[choice, torch.arange(len(x))]


# %% only the way there is known to autograd
# A part of the gradient is missing: both exchanges of tokens must go through `Exchange.apply`.
def expert_parallel(rank, world_size, x, router, expert):
    gate, order, sends, receives = sent(world_size, x, router)
    done = expert(Exchange.apply(x[order], sends, receives))
    back = torch.empty_like(x)
    dist.all_to_all_single(back, done.detach().contiguous(), sends, receives)
    y = torch.empty_like(back)
    y[order] = back
    return gate[:, None] * y
