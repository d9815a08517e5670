from contextlib import contextmanager


# %% wrong: never switched on again | wrong | says: the backward after the block must synchronise


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


# %% wrong: an exit that returns True | wrong | says: does not come out of it
class no_sync:
    def __init__(self, ddp):
        self.ddp = ddp

    def __enter__(self):
        self.before = self.ddp.require_backward_grad_sync
        self.ddp.require_backward_grad_sync = False

    def __exit__(self, *error):
        self.ddp.require_backward_grad_sync = self.before
        return True


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


# %% wrong: raises an error of its own | wrong | says: does not come out of it
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


# %% wrong: switched off before the yield and on before it too | wrong | says: is the switch
@contextmanager
def no_sync(ddp):
    old = ddp.require_backward_grad_sync
    ddp.require_backward_grad_sync = False
    ddp.require_backward_grad_sync = old
    yield
