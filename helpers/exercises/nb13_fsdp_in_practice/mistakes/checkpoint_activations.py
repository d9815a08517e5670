from torch.utils.checkpoint import checkpoint


# %% nothing is checkpointed
# No block runs again in backward: none is checkpointed.
def checkpoint_activations(blocks, x, every):
    for block in blocks:
        x = block(x)
    return x


# %% every block
# Every block is checkpointed; here only those whose index `every` divides.
def checkpoint_activations(blocks, x, every):
    for block in blocks:
        x = checkpoint(block, x, use_reentrant=False)
    return x


# %% the other ones
# It is the other way round: those whose index `every` divides.
def checkpoint_activations(blocks, x, every):
    for i, block in enumerate(blocks):
        x = checkpoint(block, x, use_reentrant=False) if i % every else block(x)
    return x


# %% other random numbers the second time
# A block draws random numbers, and when it runs again it must draw the same ones:
# `preserve_rng_state=True`, the default, sees to that.
def checkpoint_activations(blocks, x, every):
    for i, block in enumerate(blocks):
        x = (
            block(x)
            if i % every
            else checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)
        )
    return x


# %% forward under no_grad
# The first block's weights get no gradient. Where x has none, torch's reentrant checkpoint drops it, and
# so does a Function of your own around a block; with no_grad or detach() no weight gets any.
def checkpoint_activations(blocks, x, every):
    with torch.no_grad():
        for block in blocks:
            x = block(x)
    return x


# %% all blocks in one checkpoint
# Every block is checkpointed; here only those whose index `every` divides.
def checkpoint_activations(blocks, x, every):
    def run(x):
        for block in blocks:
            x = block(x)
        return x

    return checkpoint(run, x, use_reentrant=False)


# %% the last of each group, not the first
# Blocks 0, every, 2 * every, ... are checkpointed: `i % every == 0`.
def checkpoint_activations(blocks, x, every):
    for i, block in enumerate(blocks):
        x = checkpoint(block, x, use_reentrant=False) if (i + 1) % every == 0 else block(x)
    return x


# %% one rank alone runs a block again | deadlocked
# Every rank runs each block equally often: a run under fully_shard is a collective call.
def checkpoint_activations(blocks, x, every):
    for i, block in enumerate(blocks):
        if i == 0 and dist.get_rank() == 0:
            block(x.detach())
        x = block(x) if i % every else checkpoint(block, x, use_reentrant=False)
    return x


# %% runs again, but keeps everything as well
# Of a checkpointed block only its input, and the output of the whole, may stay after forward.
kept = []


def checkpoint_activations(blocks, x, every):
    for i, block in enumerate(blocks):
        if i % every == 0:
            kept.append(x.new_ones(20 * x.numel()))
            x = checkpoint(block, x, use_reentrant=False)
        else:
            x = block(x)
    return x
