from torch.utils.checkpoint import checkpoint


# %% nothing is checkpointed
# No block runs again in backward: none is checkpointed.
def checkpoint_activations(blocks, x, every):
    for block in blocks:
        x = block(x)
    return x


# %% every block
# Every block is checkpointed: only those whose index is a multiple of `every` should be.
def checkpoint_activations(blocks, x, every):
    for block in blocks:
        x = checkpoint(block, x, use_reentrant=False)
    return x


# %% the other ones
# The wrong blocks are checkpointed: it should be those whose index is a multiple of `every`.
def checkpoint_activations(blocks, x, every):
    for i, block in enumerate(blocks):
        x = checkpoint(block, x, use_reentrant=False) if i % every else block(x)
    return x


# %% other random numbers the second time
# A block draws other random numbers when it runs again: leave `preserve_rng_state=True`, the default.
def checkpoint_activations(blocks, x, every):
    for i, block in enumerate(blocks):
        x = (
            block(x)
            if i % every
            else checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)
        )
    return x


# %% forward under no_grad
# The output has no graph, so no weight gets a gradient: forward runs under no_grad, or from detached
# tensors.
def checkpoint_activations(blocks, x, every):
    with torch.no_grad():
        for block in blocks:
            x = block(x)
    return x


# %% all blocks in one checkpoint
# Every block is checkpointed: only those whose index is a multiple of `every` should be.
def checkpoint_activations(blocks, x, every):
    def run(x):
        for block in blocks:
            x = block(x)
        return x

    return checkpoint(run, x, use_reentrant=False)


# %% the last of each group, not the first
# The wrong blocks are checkpointed: it should be blocks 0, every, 2 * every, ..., `i % every == 0`.
def checkpoint_activations(blocks, x, every):
    for i, block in enumerate(blocks):
        x = checkpoint(block, x, use_reentrant=False) if (i + 1) % every == 0 else block(x)
    return x


# %% one rank alone runs a block again | deadlocked
# Every rank must run each block equally often: under fully_shard, running a block is a collective call.
def checkpoint_activations(blocks, x, every):
    for i, block in enumerate(blocks):
        if i == 0 and dist.get_rank() == 0:
            block(x.detach())
        x = block(x) if i % every else checkpoint(block, x, use_reentrant=False)
    return x


# %% runs again, but keeps everything as well
# After forward, retain only the input of each checkpointed block, and the output of the last block.
kept = []


def checkpoint_activations(blocks, x, every):
    for i, block in enumerate(blocks):
        if i % every == 0:
            kept.append(x.new_ones(20 * x.numel()))
            x = checkpoint(block, x, use_reentrant=False)
        else:
            x = block(x)
    return x


# %% reentrant
# The first block's weights get no gradient: if `x` needs no gradient, torch's reentrant checkpoint
# (`use_reentrant=True`) drops the gradients of the weights, too.
def checkpoint_activations(blocks, x, every):
    for i, block in enumerate(blocks):
        x = block(x) if i % every else checkpoint(block, x, use_reentrant=True)
    return x


# %% block.forward is checkpointed | crashed
# Checkpoint the block itself: `block.forward` bypasses the hooks of fully_shard, so its weights are not
# gathered.
def checkpoint_activations(blocks, x, every):
    for i, block in enumerate(blocks):
        x = block(x) if i % every else checkpoint(block.forward, x, use_reentrant=False)
    return x


# %% a product is kept
# A checkpointed block keeps results of some operators (selective checkpointing by operator): here it may
# keep only its input.
def checkpoint_activations(blocks, x, every):
    from torch.utils.checkpoint import create_selective_checkpoint_contexts

    def contexts():
        return create_selective_checkpoint_contexts([torch.ops.aten.addmm.default])

    for i, block in enumerate(blocks):
        x = (
            block(x)
            if i % every
            else checkpoint(block, x, use_reentrant=False, context_fn=contexts)
        )
    return x
