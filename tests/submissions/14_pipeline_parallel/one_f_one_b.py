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


# %% right: ahead, then in turn
def one_f_one_b(rank, world_size, stage, microbatches):
    steps = Steps(rank, world_size, stage)
    ahead = min(world_size - 1 - rank, microbatches)
    for i in range(ahead):
        steps.forward(i)
    for i in range(microbatches):
        if i + ahead < microbatches:
            steps.forward(i + ahead)
        steps.backward(i)
    steps.finish()


# %% right: three phases, exchanges in one batch, as Megatron does it
def one_f_one_b(rank, world_size, stage, microbatches):
    first, last = rank == 0, rank == world_size - 1
    warm = min(world_size - rank - 1, microbatches)
    steady = microbatches - warm

    def exchange(out, into, peer):
        ops = []
        if out is not None:
            ops.append(dist.P2POp(dist.isend, out, peer))
        if into is not None:
            ops.append(dist.P2POp(dist.irecv, into, peer))
        for work in dist.batch_isend_irecv(ops) if ops else []:
            work.wait()
        return into

    for i in range(warm):
        x = None if first else exchange(None, stage.empty(), rank - 1)
        y = stage.forward(i, x)
        exchange(y, None, rank + 1)
    x = None
    if steady and not first:
        x = exchange(None, stage.empty(), rank - 1)
    for k in range(steady):
        y = stage.forward(warm + k, x)
        grad = None if last else exchange(y, stage.empty(), rank + 1)
        back = stage.backward(k, grad)
        if not first:
            x = exchange(back, stage.empty() if k + 1 < steady else None, rank - 1)
    for i in range(steady, microbatches):
        grad = None if last else exchange(None, stage.empty(), rank + 1)
        back = stage.backward(i, grad)
        if not first:
            exchange(back, None, rank - 1)


# %% wrong: a list of actions first, m irecvs posted early | wrong | says: receive each tensor when its turn has come
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


# %% right: the kinds in a list first
def one_f_one_b(rank, world_size, stage, microbatches):
    steps = Steps(rank, world_size, stage)
    ahead = world_size - 1 - rank
    done = {"F": 0, "B": 0}
    for kind in (
        ["F"] * min(ahead, microbatches)
        + ["F", "B"] * max(0, microbatches - ahead)
        + ["B"] * min(ahead, microbatches)
    ):
        getattr(steps, "forward" if kind == "F" else "backward")(done[kind])
        done[kind] += 1
    steps.finish()


# %% wrong: GPipe again | wrong | says: holds the activations of 2 microbatches at once; 1F1B holds 1
def one_f_one_b(rank, world_size, stage, microbatches):
    steps = Steps(rank, world_size, stage)
    for i in range(microbatches):
        steps.forward(i)
    for i in range(microbatches):
        steps.backward(i)
    steps.finish()


# %% wrong: one microbatch after the other | wrong | says: after F0 its stage runs B0
def one_f_one_b(rank, world_size, stage, microbatches):
    steps = Steps(rank, world_size, stage)
    for i in range(microbatches):
        steps.forward(i)
        steps.backward(i)
    steps.finish()


# %% wrong: as many ahead on every stage | wrong | says: holds the activations of
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


# %% wrong: one ahead too many | wrong | says: holds the activations of 2 microbatches at once; 1F1B holds 1
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


# %% wrong: blocking sends | deadlocked | says: Start the sends with isend
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


# %% wrong: the last backwards are missing | deadlocked | says: Count the messages
def one_f_one_b(rank, world_size, stage, microbatches):
    steps = Steps(rank, world_size, stage)
    ahead = min(world_size - 1 - rank, microbatches)
    for i in range(ahead):
        steps.forward(i)
    for i in range(microbatches - ahead):
        steps.forward(i + ahead)
        steps.backward(i)
    steps.finish()


# %% wrong: nobody waits for the sends | wrong | says: never waits for its isend
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


STARTED = []


def one_f_one_b(rank, world_size, stage, microbatches):
    steps = Steps(rank, world_size, stage)
    steps.sends = STARTED
    ahead = min(world_size - 1 - rank, microbatches)
    for i in range(ahead):
        steps.forward(i)
    for i in range(microbatches):
        if i + ahead < microbatches:
            steps.forward(i + ahead)
        steps.backward(i)


# %% wrong: the newest microbatch goes back first | wrong | says: 1F1B runs B0 there
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


# %% wrong: one tensor for all that comes | wrong | says: into a tensor of its own
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


# %% wrong: as many warm-up forwards as stages behind, though there are fewer microbatches | crashed | says: the warm-up ends with the microbatches
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


# %% wrong: the Works of the sends are dropped | deadlocked | says: eep the Work that
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


# %% wrong: backward before forward in the steady state | crashed | says: F comes before B
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


# %% wrong: every Work is kept in a list until the end | wrong | says: A Work keeps the tensor that it sends
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


# %% wrong: an activation is sent after the next forward | wrong | says: idles meanwhile
def one_f_one_b(rank, world_size, stage, microbatches):
    steps = Steps(rank, world_size, stage)
    ahead = min(world_size - 1 - rank, microbatches)
    late = []
    for i in range(ahead):
        x = steps.take(rank - 1) if rank else None
        late.append(stage.forward(i, x))
        if len(late) == ahead or rank > 0:
            while late:
                steps.send(late.pop(0), rank + 1)
    for i in range(microbatches):
        if i + ahead < microbatches:
            steps.forward(i + ahead)
        steps.backward(i)
    steps.finish()


# %% wrong: a list of sends that is gone too early | deadlocked | says: Keep the Work that isend returns
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


# %% wrong: the Works are waited for at once, but a list keeps what was sent | wrong | says: tensors of a message's size at once
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


# %% right: a list of actions first
def one_f_one_b(rank, world_size, stage, microbatches):
    steps = Steps(rank, world_size, stage)
    ahead = min(world_size - 1 - rank, microbatches)
    todo = [("F", i) for i in range(ahead)]
    for i in range(microbatches):
        todo += [("F", i + ahead)] * (i + ahead < microbatches) + [("B", i)]
    for kind, i in todo:
        (steps.forward if kind == "F" else steps.backward)(i)
    for work in steps.sends.values():
        work.wait()
