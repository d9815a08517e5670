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


# %% wrong: an activation is sent after the next forward | wrong | says: is idle meanwhile
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
