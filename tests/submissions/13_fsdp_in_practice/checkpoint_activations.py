from torch.utils.checkpoint import checkpoint


# %% right: torch's checkpoint
def checkpoint_activations(blocks, x, every):
    for i, block in enumerate(blocks):
        x = block(x) if i % every else checkpoint(block, x, use_reentrant=False)
    return x


# %% right: a wrapper around each chosen block
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper


def checkpoint_activations(blocks, x, every):
    chosen = set(range(0, len(blocks), every))
    for i, block in enumerate(blocks):
        x = checkpoint_wrapper(block)(x) if i in chosen else block(x)
    return x


# %% right: a function in between, and x on the way by keyword
def checkpoint_activations(blocks, x, every):
    def run(block, given):
        return block(given)

    for i, block in enumerate(blocks):
        if i % every == 0:
            x = checkpoint(run, block, given=x, use_reentrant=False, determinism_check="none")
        else:
            x = run(block, x)
    return x


# %% wrong: by hand, the first block's weights learn nothing where x does not | wrong | says: gradient of blocks|calls in backward
class Again(torch.autograd.Function):
    @staticmethod
    def forward(ctx, block, x):
        ctx.block, ctx.state = block, torch.get_rng_state()
        ctx.save_for_backward(x)
        return block(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        x = x.detach().requires_grad_()
        torch.set_rng_state(ctx.state)
        with torch.enable_grad():
            ctx.block(x).backward(grad)
        return None, x.grad


def checkpoint_activations(blocks, x, every):
    for i, block in enumerate(blocks):
        x = block(x) if i % every else Again.apply(block, x)
    return x
