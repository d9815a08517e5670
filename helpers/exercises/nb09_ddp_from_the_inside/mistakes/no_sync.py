from contextlib import contextmanager


# %% True afterwards, whatever it was
# After the block the flag is True: restore what it was before, which may have been False.
@contextmanager
def no_sync(ddp):
    ddp.require_backward_grad_sync = False
    try:
        yield
    finally:
        ddp.require_backward_grad_sync = True


# %% no finally
# Restore the flag in `finally:`, around the `yield`.
@contextmanager
def no_sync(ddp):
    old = ddp.require_backward_grad_sync
    ddp.require_backward_grad_sync = False
    yield
    ddp.require_backward_grad_sync = old


# %% no gradients at all | crashed
# Inside the block no gradients are computed: backward must run as usual, only without the all_reduce. Leave
# autograd on.
@contextmanager
def no_sync(ddp):
    with torch.no_grad():
        yield


# %% a generator without its decorator | crashed
# A generator function is not a context manager yet: keep `@contextmanager` above it, and `yield` once.
def no_sync(ddp):
    old = ddp.require_backward_grad_sync
    ddp.require_backward_grad_sync = False
    try:
        yield
    finally:
        ddp.require_backward_grad_sync = old


# %% swallows the exception
# Do not swallow the exception: restore the flag in `finally:`, without `except:` or `return` there.
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
# Set the flag to False for the block; do not flip it.
@contextmanager
def no_sync(ddp):
    ddp.require_backward_grad_sync = not ddp.require_backward_grad_sync
    try:
        yield
    finally:
        ddp.require_backward_grad_sync = not ddp.require_backward_grad_sync


# %% an exit that returns True
# Do not swallow the exception: restore the flag in `finally:`, without `except:` or `return` there.
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
# Do not swallow the exception: restore the flag in `finally:`, without `except:` or `return` there.
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


# %% catches Exception, which KeyboardInterrupt is not
# Restore the flag in `finally:`: KeyboardInterrupt is not an Exception.
@contextmanager
def no_sync(ddp):
    old = ddp.require_backward_grad_sync
    ddp.require_backward_grad_sync = False
    try:
        yield
    except Exception:
        ddp.require_backward_grad_sync = old
        raise
    ddp.require_backward_grad_sync = old


# %% one place for all blocks
# The old value is kept in one place for all blocks, so an inner block overwrites the outer one's: keep it
# in a local variable.
@contextmanager
def no_sync(ddp):
    ddp.old = ddp.require_backward_grad_sync
    ddp.require_backward_grad_sync = False
    try:
        yield
    finally:
        ddp.require_backward_grad_sync = ddp.old
