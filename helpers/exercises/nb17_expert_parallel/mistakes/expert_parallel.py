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
# Results come back in the order in which the tokens were sent. Put each where its token was, `y[order] =
# back`, before you multiply by the gates.
def expert_parallel(rank, world_size, x, router, expert):
    return route(rank, world_size, x, router, expert, undo=False)


# %% no gate
# The result of a token is multiplied by its gate, the probability of its expert.
def expert_parallel(rank, world_size, x, router, expert):
    return route(rank, world_size, x, router, expert, gated=False)


# %% the gate is detached
# The router learns through the gate alone: multiply the output by the probability itself, not by a
# detached copy.
def expert_parallel(rank, world_size, x, router, expert):
    return route(rank, world_size, x, router, expert, detach=True)


# %% an expert without tokens is left out | deadlocked
# Every rank makes the same five calls, forward and backward, also with no token at all. And backward
# calls an exchange only if the exchange got a tensor with a graph: what the expert makes of no rows has
# one, a new empty tensor has none.
def expert_parallel(rank, world_size, x, router, expert):
    return route(rank, world_size, x, router, expert, skip=True)


# %% counts without minlength | crashed
# Sizes that met did not agree. Does every rank hand in one count for each rank
# (`bincount(minlength=world_size)`), and take as much as the others' counts say?
def expert_parallel(rank, world_size, x, router, expert):
    return route(rank, world_size, x, router, expert, minlength=False)


# %% the lists are not swapped on the way back | crashed
# Splits are lists of whole numbers, one for each rank: `counts.tolist()`. Out: how many tokens you send
# to each rank; in: how many you get from each. On the way back they change places.
def expert_parallel(rank, world_size, x, router, expert):
    return route(rank, world_size, x, router, expert, swap=False)


# %% an expert without tokens is not called
# Call the expert with no rows as well. Then its weights have a gradient of zeros and not None, on which
# an optimizer or DDP would stumble.
def expert_parallel(rank, world_size, x, router, expert):
    gate, order, sends, receives = sent(world_size, x, router)
    arrived = Exchange.apply(x[order], sends, receives)
    back = Exchange.apply(expert(arrived) if len(arrived) else arrived, receives, sends)
    y = torch.empty_like(back)
    y[order] = back
    return gate[:, None] * y


# %% a rank that neither has nor gets tokens leaves the way back out | deadlocked
# Every rank makes the same five calls, forward and backward, also with no token at all. And backward
# calls an exchange only if the exchange got a tensor with a graph: what the expert makes of no rows has
# one, a new empty tensor has none.
def expert_parallel(rank, world_size, x, router, expert):
    gate, order, sends, receives = sent(world_size, x, router)
    done = expert(Exchange.apply(x[order], sends, receives))
    back = Exchange.apply(done, receives, sends) if sum(sends) + sum(receives) else done
    y = torch.empty_like(back)
    y[order] = back
    return gate[:, None] * y


# %% sorted once more in place of put back
# `back[order]` sorts once more. To undo an order, write to it: `y[order] = back`.
def expert_parallel(rank, world_size, x, router, expert):
    gate, order, sends, receives = sent(world_size, x, router)
    arrived = Exchange.apply(x[order], sends, receives)
    return gate[:, None] * Exchange.apply(expert(arrived), receives, sends)[order]


# %% times the gates, then put back
# The gates of others multiply these rows: gates are in the order of this rank's tokens, what comes back
# is sorted by expert. First `y[order] = back`, then times the gates.
def expert_parallel(rank, world_size, x, router, expert):
    gate, order, sends, receives = sent(world_size, x, router)
    arrived = Exchange.apply(x[order], sends, receives)
    back = gate[:, None] * Exchange.apply(expert(arrived), receives, sends)
    y = torch.empty_like(back)
    y[order] = back
    return y


# %% gates are not a column | crashed
# The gates are one number for each row. `gate[:, None]` is a column, which multiplies whole rows; `gate`
# alone would multiply columns.
def expert_parallel(rank, world_size, x, router, expert):
    gate, order, sends, receives = sent(world_size, x, router)
    arrived = Exchange.apply(x[order], sends, receives)
    back = Exchange.apply(expert(arrived), receives, sends)
    y = torch.empty_like(back)
    y[order] = back
    return gate * y


# %% the logit for a gate
# The gate is the probability, after the softmax, not the logit.
def expert_parallel(rank, world_size, x, router, expert):
    gate, order, sends, receives = sent(world_size, x, router)
    back = Exchange.apply(expert(Exchange.apply(x[order], sends, receives)), receives, sends)
    y = torch.empty_like(back)
    y[order] = back
    return (x @ router.T).max(1).values[:, None] * y
