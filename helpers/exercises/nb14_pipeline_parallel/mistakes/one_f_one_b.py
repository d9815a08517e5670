class Steps:
    """A forward and a backward with their transfers: one send at a time to each neighbor."""

    def __init__(self, rank, world_size, stage):
        self.rank, self.last, self.stage, self.sends = rank, world_size - 1, stage, {}

    def take(self, peer):
        box = self.stage.empty()
        dist.recv(box, peer)
        return box

    def send(self, out, peer):
        if peer in self.sends:
            self.sends[peer].wait()
        self.sends[peer] = dist.isend(out, peer)

    def forward(self, i):
        y = self.stage.forward(i, self.take(self.rank - 1) if self.rank else None)
        if self.rank < self.last:
            self.send(y, self.rank + 1)

    def backward(self, i):
        grad = self.take(self.rank + 1) if self.rank < self.last else None
        grad = self.stage.backward(i, grad)
        if self.rank:
            self.send(grad, self.rank - 1)

    def finish(self):
        for work in self.sends.values():
            work.wait()


# %% a list of actions first, m irecvs posted early
# Too many tensors are kept for transfers. A Work keeps its tensor even after wait(), so drop it: before a
# send wait for the last one to the same rank, and receive each tensor only when it is needed.
def one_f_one_b(rank, world_size, stage, microbatches):
    p, m = world_size, microbatches
    plan, f, b = [], 0, 0
    while b < m:
        if f < m and f - b < p - rank:
            plan.append(("F", f))
            f += 1
        else:
            plan.append(("B", b))
            b += 1
    boxes, works = {}, []
    for kind, peer in (("F", rank - 1), ("B", rank + 1)):
        if 0 <= peer < p:
            for i in range(m):
                box = stage.empty()
                boxes[kind, i] = box, dist.irecv(box, peer)
    for kind, i in plan:
        box = None
        if (kind, i) in boxes:
            box, work = boxes[kind, i]
            work.wait()
        out = stage.forward(i, box) if kind == "F" else stage.backward(i, box)
        peer = rank + 1 if kind == "F" else rank - 1
        if 0 <= peer < p:
            works.append(dist.isend(out, peer))
    for work in works:
        work.wait()


# %% GPipe again
# All forwards run before the first backward, as in GPipe. Rank r of p runs p - 1 - r forwards first, then
# one forward and one backward in turn.
def one_f_one_b(rank, world_size, stage, microbatches):
    steps = Steps(rank, world_size, stage)
    for i in range(microbatches):
        steps.forward(i)
    for i in range(microbatches):
        steps.backward(i)
    steps.finish()


# %% one microbatch after the other
# Each microbatch goes forward and backward before the next begins. Rank r of p runs p - 1 - r forwards
# first, then one forward and one backward in turn.
def one_f_one_b(rank, world_size, stage, microbatches):
    steps = Steps(rank, world_size, stage)
    for i in range(microbatches):
        steps.forward(i)
        steps.backward(i)
    steps.finish()


# %% as many ahead on every stage
# Too many activations are kept at once: backwards run later than they could. Rank r of p runs p - 1 - r
# forwards first, then one forward and one backward in turn.
def one_f_one_b(rank, world_size, stage, microbatches):
    steps = Steps(rank, world_size, stage)
    ahead = min(world_size - 1, microbatches)
    for i in range(ahead):
        steps.forward(i)
    for i in range(microbatches):
        if i + ahead < microbatches:
            steps.forward(i + ahead)
        steps.backward(i)
    steps.finish()


# %% one ahead too many
# Too many activations are kept at once: backwards run later than they could. Rank r of p runs p - 1 - r
# forwards first, then one forward and one backward in turn.
def one_f_one_b(rank, world_size, stage, microbatches):
    steps = Steps(rank, world_size, stage)
    ahead = min(world_size - rank, microbatches)
    for i in range(ahead):
        steps.forward(i)
    for i in range(microbatches):
        if i + ahead < microbatches:
            steps.forward(i + ahead)
        steps.backward(i)
    steps.finish()


# %% blocking sends | deadlocked
# Two neighbors send to each other, an activation and a gradient, and each waits for the other to receive.
# Start the sends with isend, keep the Work, and wait for it before the next send to the same rank.
def one_f_one_b(rank, world_size, stage, microbatches):
    first, last = rank == 0, rank == world_size - 1

    def forward(i):
        x = None
        if not first:
            x = stage.empty()
            dist.recv(x, rank - 1)
        y = stage.forward(i, x)
        if not last:
            dist.send(y, rank + 1)

    def backward(i):
        grad = None
        if not last:
            grad = stage.empty()
            dist.recv(grad, rank + 1)
        grad = stage.backward(i, grad)
        if not first:
            dist.send(grad, rank - 1)

    ahead = min(world_size - 1 - rank, microbatches)
    for i in range(ahead):
        forward(i)
    for i in range(microbatches):
        if i + ahead < microbatches:
            forward(i + ahead)
        backward(i)


# %% the last backwards are missing | deadlocked
# Some backwards are missing, and other ranks wait for their gradients. After the steady state the
# microbatches of the warm-up still need their backwards.
def one_f_one_b(rank, world_size, stage, microbatches):
    steps = Steps(rank, world_size, stage)
    ahead = min(world_size - 1 - rank, microbatches)
    for i in range(ahead):
        steps.forward(i)
    for i in range(microbatches - ahead):
        steps.forward(i + ahead)
        steps.backward(i)
    steps.finish()


# %% the newest microbatch goes back first
# The newest microbatch goes backward first. Both directions take the microbatches in the order 0, 1, 2, ...
def one_f_one_b(rank, world_size, stage, microbatches):
    steps = Steps(rank, world_size, stage)
    ahead = min(world_size - 1 - rank, microbatches)
    for i in range(ahead):
        steps.forward(i)
    for i in range(ahead, microbatches):
        steps.forward(i)
        steps.backward(i)
    for i in reversed(range(ahead)):
        steps.backward(i)
    steps.finish()


# %% one tensor for all that comes
# An activation was overwritten by a later message before its backward. Receive each activation into a
# tensor of its own: call stage.empty() for each.
def one_f_one_b(rank, world_size, stage, microbatches):
    steps = Steps(rank, world_size, stage)
    box = stage.empty()

    def take(peer):
        dist.recv(box, peer)
        return box

    steps.take = take
    ahead = min(world_size - 1 - rank, microbatches)
    for i in range(ahead):
        steps.forward(i)
    for i in range(microbatches):
        if i + ahead < microbatches:
            steps.forward(i + ahead)
        steps.backward(i)
    steps.finish()


# %% as many warm-up forwards as stages behind, though there are fewer microbatches | crashed
# The warm-up runs more forwards than there are microbatches: it has min(world_size - 1 - rank,
# microbatches).
def one_f_one_b(rank, world_size, stage, microbatches):
    steps = Steps(rank, world_size, stage)
    ahead = world_size - 1 - rank
    for i in range(ahead):
        steps.forward(i)
    for i in range(ahead, microbatches):
        steps.forward(i)
        steps.backward(i - ahead)
    for i in range(microbatches - ahead, microbatches):
        steps.backward(i)
    steps.finish()


# %% backward before forward in the steady state | crashed
# A backward runs before its forward. After the warm-up (which is empty on the last rank) each step is one
# forward, then one backward.
def one_f_one_b(rank, world_size, stage, microbatches):
    steps = Steps(rank, world_size, stage)
    ahead = min(world_size - 1 - rank, microbatches)
    for i in range(ahead):
        steps.forward(i)
    for i in range(microbatches):
        steps.backward(i)
        if i + ahead < microbatches:
            steps.forward(i + ahead)
    steps.finish()


# %% every Work is kept in a list until the end
# Too many tensors are kept for transfers. A Work keeps its tensor even after wait(), so drop it: before a
# send wait for the last one to the same rank, and receive each tensor only when it is needed.
class Steps:
    def __init__(self, rank, world_size, stage):
        self.rank, self.last, self.stage, self.sends = rank, world_size - 1, stage, []

    def take(self, peer):
        box = self.stage.empty()
        dist.recv(box, peer)
        return box

    def forward(self, i):
        y = self.stage.forward(i, self.take(self.rank - 1) if self.rank else None)
        if self.rank < self.last:
            self.sends.append(dist.isend(y, self.rank + 1))

    def backward(self, i):
        grad = self.take(self.rank + 1) if self.rank < self.last else None
        grad = self.stage.backward(i, grad)
        if self.rank:
            self.sends.append(dist.isend(grad, self.rank - 1))

    def finish(self):
        for work in self.sends:
            work.wait()


def one_f_one_b(rank, world_size, stage, microbatches):
    steps = Steps(rank, world_size, stage)
    ahead, done = min(world_size - 1 - rank, microbatches), 0
    for i in range(microbatches + ahead):
        if i < microbatches:
            steps.forward(i)
        if i >= ahead:
            steps.backward(i - ahead)
            done += 1
    steps.finish()


# %% the Works are waited for at once, but a list keeps what was sent
# Too many tensors are kept for transfers. A Work keeps its tensor even after wait(), so drop it: before a
# send wait for the last one to the same rank, and receive each tensor only when it is needed.
def one_f_one_b(rank, world_size, stage, microbatches):
    steps, sent = Steps(rank, world_size, stage), []
    start = steps.send
    steps.send = lambda out, peer: (sent.append(out.clone()), start(sent[-1], peer))
    ahead = min(world_size - 1 - rank, microbatches)
    for i in range(microbatches + ahead):
        if i < microbatches:
            steps.forward(i)
        if i >= ahead:
            steps.backward(i - ahead)
    steps.finish()
