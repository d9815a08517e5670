class Steps:
    """A forward and a backward with their transfers: one send at a time to each neighbour."""

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
# A Work keeps the tensor that it sends or receives, also after wait(): before you start a send, wait for
# the last one to the same rank and let go of its Work, and receive each tensor when its turn has come.
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
# Backward runs as soon as its gradient can be there: before that, rank r of p runs p - 1 - r forwards,
# then one forward and one backward in turn.
def one_f_one_b(rank, world_size, stage, microbatches):
    steps = Steps(rank, world_size, stage)
    for i in range(microbatches):
        steps.forward(i)
    for i in range(microbatches):
        steps.backward(i)
    steps.finish()


# %% one microbatch after the other
# First min(world_size - 1 - rank, microbatches) forwards; then F and B in turn, F first, until no forward
# is left; then the other backwards. Microbatches go 0, 1, 2, ... both ways.
def one_f_one_b(rank, world_size, stage, microbatches):
    steps = Steps(rank, world_size, stage)
    for i in range(microbatches):
        steps.forward(i)
        steps.backward(i)
    steps.finish()


# %% as many ahead on every stage
# Backward runs as soon as its gradient can be there: before that, rank r of p runs p - 1 - r forwards,
# then one forward and one backward in turn.
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
# Backward runs as soon as its gradient can be there: before that, rank r of p runs p - 1 - r forwards,
# then one forward and one backward in turn.
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
# One rank sends an activation, its neighbour a gradient, and each waits for the other. Start the sends
# with isend, keep its Work, and wait for it before the next send to the same rank.
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
# Count the messages: rank r receives an activation from r - 1 for each microbatch (the first rank none),
# and a gradient from r + 1 (the last rank none).
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
# First min(world_size - 1 - rank, microbatches) forwards; then F and B in turn, F first, until no forward
# is left; then the other backwards. Microbatches go 0, 1, 2, ... both ways.
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
# Receive each activation into a tensor of its own: call stage.empty() for each.
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
# There may be fewer microbatches than stages, and the warm-up ends with the microbatches: min(world_size
# - 1 - rank, microbatches) forwards.
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


# %% the Works of the sends are dropped | deadlocked
# Rank 0 never waits for its isend with rank 1 (1, line 36). Under gloo a transfer is over, and sure to
# happen at all, only when wait() has returned: keep the Work that the call returns. is_completed() stays
# False until then.
def one_f_one_b(rank, world_size, stage, microbatches):
    steps = Steps(rank, world_size, stage)
    steps.send = lambda out, peer: dist.isend(out, peer) and None
    ahead = min(world_size - 1 - rank, microbatches)
    for i in range(ahead):
        steps.forward(i)
    for i in range(microbatches):
        if i + ahead < microbatches:
            steps.forward(i + ahead)
        steps.backward(i)


# %% backward before forward in the steady state | crashed
# A backward needs its forward first: after the warm-up, which has no forward at all on the last rank, F
# comes before B.
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
# A Work keeps the tensor that it sends or receives, also after wait(): before you start a send, wait for
# the last one to the same rank and let go of its Work, and receive each tensor when its turn has come.
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


# %% a list of sends that is gone too early | deadlocked
# Rank 0 never waits for its isend with rank 1 (1, line 46). Under gloo a transfer is over, and sure to
# happen at all, only when wait() has returned: keep the Work that the call returns. is_completed() stays
# False until then.
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
    ahead = min(world_size - 1 - rank, microbatches)
    for i in range(ahead):
        steps.forward(i)
        steps.sends.clear()
    for i in range(microbatches):
        if i + ahead < microbatches:
            steps.forward(i + ahead)
            steps.sends.clear()
        steps.backward(i)
        steps.sends.clear()


# %% the Works are waited for at once, but a list keeps what was sent
# A Work keeps the tensor that it sends or receives, also after wait(): before you start a send, wait for
# the last one to the same rank and let go of its Work, and receive each tensor when its turn has come.
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
