from contextlib import contextmanager


# %% right: try, yield, finally
@contextmanager
def no_sync(ddp):
    old = ddp.require_backward_grad_sync
    ddp.require_backward_grad_sync = False
    try:
        yield
    finally:
        ddp.require_backward_grad_sync = old


# %% right: a class with __enter__ and __exit__
class no_sync:
    def __init__(self, ddp):
        self.ddp = ddp

    def __enter__(self):
        self.before = self.ddp.require_backward_grad_sync
        self.ddp.require_backward_grad_sync = False
        return self.ddp

    def __exit__(self, *error):
        self.ddp.require_backward_grad_sync = self.before


# %% right: an ExitStack, setattr
import contextlib


@contextlib.contextmanager
def no_sync(ddp: torch.nn.Module):
    with contextlib.ExitStack() as stack:
        name = "require_backward_grad_sync"
        stack.callback(setattr, ddp, name, getattr(ddp, name))
        setattr(ddp, name, False)
        yield ddp


# %% wrong: never switched on again | wrong | says: in the backward after the block
@contextmanager
def no_sync(ddp):
    ddp.require_backward_grad_sync = False
    yield


# %% wrong: switches nothing off | wrong | says: is the flag
@contextmanager
def no_sync(ddp):
    yield


# %% wrong: torch's own | crashed | says: is what you are to write
@contextmanager
def no_sync(ddp):
    with ddp.no_sync():
        yield


# %% wrong: returns torch's own | crashed | says: is what you are to write
def no_sync(ddp):
    return ddp.no_sync()


# %% wrong: another switch | wrong | says: `require_backward_grad_sync` is the flag
@contextmanager
def no_sync(ddp):
    old = ddp.require_forward_param_sync
    ddp.require_forward_param_sync = False
    try:
        yield
    finally:
        ddp.require_forward_param_sync = old


# %% right: a class whose exit gives False, in a stack of values
class no_sync:
    before: list = []

    def __init__(self, ddp):
        self.ddp = ddp

    def __enter__(self):
        self.before.append(self.ddp.require_backward_grad_sync)
        self.ddp.require_backward_grad_sync = False

    def __exit__(self, *error):
        self.ddp.require_backward_grad_sync = self.before.pop()
        return False


# %% right: mock's patch.object
def no_sync(ddp):
    from unittest.mock import patch

    return patch.object(ddp, "require_backward_grad_sync", False)


# %% wrong: restores only after an exception | wrong | says: off exactly while the block runs
@contextmanager
def no_sync(ddp):
    old = ddp.require_backward_grad_sync
    ddp.require_backward_grad_sync = False
    try:
        yield
    except Exception:
        ddp.require_backward_grad_sync = old
        raise


# %% wrong: switched off before the yield and on before it too | wrong | says: is the flag
@contextmanager
def no_sync(ddp):
    old = ddp.require_backward_grad_sync
    ddp.require_backward_grad_sync = False
    ddp.require_backward_grad_sync = old
    yield
