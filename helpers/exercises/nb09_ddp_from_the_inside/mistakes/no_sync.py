from contextlib import contextmanager


# %% True afterwards, whatever it was
# Put back what the switch was before, not True: it may have been False already.
@contextmanager
def no_sync(ddp):
    ddp.require_backward_grad_sync = False
    try:
        yield
    finally:
        ddp.require_backward_grad_sync = True


# %% no finally
# Put the old value back in `finally:`, around the `yield`.
@contextmanager
def no_sync(ddp):
    old = ddp.require_backward_grad_sync
    ddp.require_backward_grad_sync = False
    yield
    ddp.require_backward_grad_sync = old


# %% no gradients at all | crashed
# Backward runs inside the block as ever, only without the all_reduce: leave autograd on.
@contextmanager
def no_sync(ddp):
    with torch.no_grad():
        yield


# %% a generator without its decorator | crashed
# Keep `@contextmanager` above the function, and `yield` once in it.
def no_sync(ddp):
    old = ddp.require_backward_grad_sync
    ddp.require_backward_grad_sync = False
    try:
        yield
    finally:
        ddp.require_backward_grad_sync = old


# %% swallows the exception
# Do not catch it: with `finally:` instead of `except:` it goes on by itself.
@contextmanager
def no_sync(ddp):
    old = ddp.require_backward_grad_sync
    ddp.require_backward_grad_sync = False
    try:
        yield
    except Exception:
        pass
    ddp.require_backward_grad_sync = old


# %% the switch is flipped
# Set the switch to False for the block; do not flip it.
@contextmanager
def no_sync(ddp):
    ddp.require_backward_grad_sync = not ddp.require_backward_grad_sync
    try:
        yield
    finally:
        ddp.require_backward_grad_sync = not ddp.require_backward_grad_sync


# %% an exit that returns True
# Do not catch it: with `finally:` instead of `except:` it goes on by itself.
class no_sync:
    def __init__(self, ddp):
        self.ddp = ddp

    def __enter__(self):
        self.before = self.ddp.require_backward_grad_sync
        self.ddp.require_backward_grad_sync = False

    def __exit__(self, *error):
        self.ddp.require_backward_grad_sync = self.before
        return True


# %% raises an error of its own
# Do not catch it: with `finally:` instead of `except:` it goes on by itself.
@contextmanager
def no_sync(ddp):
    old = ddp.require_backward_grad_sync
    ddp.require_backward_grad_sync = False
    try:
        yield
    except Exception as error:
        raise RuntimeError("in no_sync") from error
    finally:
        ddp.require_backward_grad_sync = old
