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


# %% wrong: GPipe again | wrong | says: holds the activations of 2 microbatches at once; 1F1B holds 1


# %% wrong: one ahead too many | wrong | says: holds the activations of 2 microbatches at once; 1F1B holds 1


# %% right: sends are waited for as the next one starts
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
                steps.sends.append(dist.isend(late.pop(0), rank + 1))
    for i in range(microbatches):
        if i + ahead < microbatches:
            steps.forward(i + ahead)
        steps.backward(i)
    steps.finish()


# %% wrong: nobody waits for the sends | wrong | says: never waits for its isend
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


# %% wrong: a list of sends that is gone too early | deadlocked | says: Keep the Work that isend returns
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
