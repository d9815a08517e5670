def broadcast_module(module, src=0):
    for tensor in [*module.parameters(), *module.buffers()]:
        dist.broadcast(tensor.detach(), src)


class Wrapper(torch.nn.Module):
    def forward(self, *inputs):
        for buffer in self.module.buffers():
            dist.broadcast(buffer, src=0)
        return self.module(*inputs)


def pack(module, limit):
    buckets, size = [], limit + 1
    for p in reversed([p for p in module.parameters() if p.requires_grad]):
        nbytes = p.numel() * p.element_size()
        if size + nbytes > limit:
            buckets.append([])
            size = 0
        buckets[-1].append(p)
        size += nbytes
    return buckets


class Common(Wrapper):
    def __init__(self, module, bucket_bytes):
        super().__init__()
        self.module = module
        broadcast_module(module)
        self.buckets = pack(module, bucket_bytes)
        self.ready, self.sent = set(), []
        for bucket in self.buckets:
            for p in bucket:
                p.register_post_accumulate_grad_hook(self.hook)

    def hook(self, p):
        self.ready.add(p)
        while len(self.sent) < len(self.buckets):
            bucket = self.buckets[len(self.sent)]
            if not self.ready.issuperset(bucket):
                break
            self.send(bucket)

    def send(self, bucket):
        flat = torch.cat([p.grad.flatten() for p in bucket])
        self.sent.append((bucket, flat, dist.all_reduce(flat, async_op=True)))

    def flush(self):
        for bucket in self.buckets[len(self.sent) :]:
            for p in bucket:
                if p.grad is None:
                    p.grad = torch.zeros_like(p)
            self.send(bucket)

    def unpack(self):
        for bucket, flat, work in self.sent:
            work.wait()
            flat /= dist.get_world_size()
            for p, part in zip(bucket, flat.split([p.numel() for p in bucket])):
                p.grad = part.view_as(p)

    def finish(self):
        self.flush()
        self.unpack()
        self.ready.clear()
        self.sent.clear()


# %% a bucket leaves as soon as it is full | crashed
# Ranks have sent different buckets in one call, as their gradients come in another order, or not at all.
# Buckets must leave in one fixed order: bucket 1 waits until bucket 0 has left, even if it is full
# earlier.
class BucketedDDP(Common):
    def hook(self, p):
        self.ready.add(p)
        for bucket in self.buckets:
            if any(p is q for q in bucket) and self.ready.issuperset(bucket):
                self.send(bucket)

    def flush(self):
        gone = {bucket[0] for bucket, _, _ in self.sent}
        for bucket in self.buckets:
            if bucket[0] not in gone:
                for p in bucket:
                    if p.grad is None:
                        p.grad = torch.zeros_like(p)
                self.send(bucket)


# %% ready is not emptied | crashed
# A gradient is None. Is a bucket started that is not complete? Was the set of what is ready emptied in
# finish(), for the next step?
class BucketedDDP(Common):
    def finish(self):
        self.flush()
        self.unpack()
        self.sent.clear()


# %% the last bucket is left out of the means
# For this parameter the mean never reaches `p.grad`. Does its hook run? Then what is reduced must be
# `p.grad` itself, or be copied back into it in finish().
class BucketedDDP(Common):
    def unpack(self):
        for bucket, flat, work in self.sent:
            work.wait()
            flat /= dist.get_world_size()
            for p, part in zip(bucket[:-1], flat.split([p.numel() for p in bucket])):
                p.grad = part.view_as(p)


# %% the sum
# This is the sum over {n} ranks: divide by the world size, in finish().
class BucketedDDP(Common):
    def unpack(self):
        for bucket, flat, work in self.sent:
            work.wait()
            for p, part in zip(bucket, flat.split([p.numel() for p in bucket])):
                p.grad = part.view_as(p)


# %% ready is whoever has a gradient
# The first step is right, a later one not: what does finish() leave behind? Empty lists and sets, or what
# is left of this step is taken for the next one's.
def broadcast_module(module, src=0):
    for tensor in [*module.parameters(), *module.buffers()]:
        dist.broadcast(tensor.detach(), src)


class Common(torch.nn.Module):
    def __init__(self, module, bucket_bytes):
        super().__init__()
        self.module = module
        broadcast_module(module)
        self.buckets, size = [], bucket_bytes + 1
        for p in [p for p in module.parameters() if p.requires_grad][::-1]:
            if size + p.nbytes > bucket_bytes:
                self.buckets.append([])
                size = 0
            self.buckets[-1].append(p)
            size += p.nbytes
            p.register_post_accumulate_grad_hook(self.hook)
        self.begin()

    def begin(self):
        self.ready, self.sent = set(), []

    def forward(self, *inputs):
        for buffer in self.module.buffers():
            dist.broadcast(buffer, src=0)
        return self.module(*inputs)

    def complete(self, bucket):
        return self.ready.issuperset(bucket)

    def hook(self, p):
        self.ready.add(p)
        while len(self.sent) < len(self.buckets) and self.complete(self.buckets[len(self.sent)]):
            self.send(self.buckets[len(self.sent)])

    def flat(self, bucket):
        return torch.cat([p.grad.flatten() for p in bucket])

    def send(self, bucket):
        flat = self.flat(bucket)
        self.sent.append((bucket, flat, dist.all_reduce(flat, async_op=True)))

    def flush(self):
        for bucket in self.buckets[len(self.sent) :]:
            for p in bucket:
                if p.grad is None:
                    p.grad = torch.zeros_like(p)
            self.send(bucket)

    def finish(self):
        self.flush()
        for bucket, flat, work in self.sent:
            work.wait()
            flat /= dist.get_world_size()
            for p, part in zip(bucket, flat.split([p.numel() for p in bucket])):
                p.grad = part.view_as(p)
        self.begin()


class BucketedDDP(Common):
    def complete(self, bucket):
        return all(p.grad is not None for p in bucket)


# %% always float32 | crashed
# What is reduced and put back has the dtype of the gradients.
def broadcast_module(module, src=0):
    for tensor in [*module.parameters(), *module.buffers()]:
        dist.broadcast(tensor.detach(), src)


class Common(torch.nn.Module):
    def __init__(self, module, bucket_bytes):
        super().__init__()
        self.module = module
        broadcast_module(module)
        self.buckets, size = [], bucket_bytes + 1
        for p in [p for p in module.parameters() if p.requires_grad][::-1]:
            if size + p.nbytes > bucket_bytes:
                self.buckets.append([])
                size = 0
            self.buckets[-1].append(p)
            size += p.nbytes
            p.register_post_accumulate_grad_hook(self.hook)
        self.begin()

    def begin(self):
        self.ready, self.sent = set(), []

    def forward(self, *inputs):
        for buffer in self.module.buffers():
            dist.broadcast(buffer, src=0)
        return self.module(*inputs)

    def complete(self, bucket):
        return self.ready.issuperset(bucket)

    def hook(self, p):
        self.ready.add(p)
        while len(self.sent) < len(self.buckets) and self.complete(self.buckets[len(self.sent)]):
            self.send(self.buckets[len(self.sent)])

    def flat(self, bucket):
        return torch.cat([p.grad.flatten() for p in bucket])

    def send(self, bucket):
        flat = self.flat(bucket)
        self.sent.append((bucket, flat, dist.all_reduce(flat, async_op=True)))

    def flush(self):
        for bucket in self.buckets[len(self.sent) :]:
            for p in bucket:
                if p.grad is None:
                    p.grad = torch.zeros_like(p)
            self.send(bucket)

    def finish(self):
        self.flush()
        for bucket, flat, work in self.sent:
            work.wait()
            flat /= dist.get_world_size()
            for p, part in zip(bucket, flat.split([p.numel() for p in bucket])):
                p.grad = part.view_as(p)
        self.begin()


class BucketedDDP(Common):
    def flat(self, bucket):
        return super().flat(bucket).float()


# %% divided twice
# It is divided by the world size twice: divide once, after the wait.
def broadcast_module(module, src=0):
    for tensor in [*module.parameters(), *module.buffers()]:
        dist.broadcast(tensor.detach(), src)


class Common(torch.nn.Module):
    def __init__(self, module, bucket_bytes):
        super().__init__()
        self.module = module
        broadcast_module(module)
        self.buckets, size = [], bucket_bytes + 1
        for p in [p for p in module.parameters() if p.requires_grad][::-1]:
            if size + p.nbytes > bucket_bytes:
                self.buckets.append([])
                size = 0
            self.buckets[-1].append(p)
            size += p.nbytes
            p.register_post_accumulate_grad_hook(self.hook)
        self.begin()

    def begin(self):
        self.ready, self.sent = set(), []

    def forward(self, *inputs):
        for buffer in self.module.buffers():
            dist.broadcast(buffer, src=0)
        return self.module(*inputs)

    def complete(self, bucket):
        return self.ready.issuperset(bucket)

    def hook(self, p):
        self.ready.add(p)
        while len(self.sent) < len(self.buckets) and self.complete(self.buckets[len(self.sent)]):
            self.send(self.buckets[len(self.sent)])

    def flat(self, bucket):
        return torch.cat([p.grad.flatten() for p in bucket])

    def send(self, bucket):
        flat = self.flat(bucket)
        self.sent.append((bucket, flat, dist.all_reduce(flat, async_op=True)))

    def flush(self):
        for bucket in self.buckets[len(self.sent) :]:
            for p in bucket:
                if p.grad is None:
                    p.grad = torch.zeros_like(p)
            self.send(bucket)

    def finish(self):
        self.flush()
        for bucket, flat, work in self.sent:
            work.wait()
            flat /= dist.get_world_size()
            for p, part in zip(bucket, flat.split([p.numel() for p in bucket])):
                p.grad = part.view_as(p)
        self.begin()


class BucketedDDP(Common):
    def flat(self, bucket):
        return super().flat(bucket) / dist.get_world_size()


# %% nothing is broadcast at the start
# Broadcast the module in __init__, on every rank: `broadcast_module(module)`.
def broadcast_module(module, src=0):
    for tensor in [*module.parameters(), *module.buffers()]:
        dist.broadcast(tensor.detach(), src)


class Common(torch.nn.Module):
    def __init__(self, module, bucket_bytes):
        super().__init__()
        self.module = module
        broadcast_module(module)
        self.buckets, size = [], bucket_bytes + 1
        for p in [p for p in module.parameters() if p.requires_grad][::-1]:
            if size + p.nbytes > bucket_bytes:
                self.buckets.append([])
                size = 0
            self.buckets[-1].append(p)
            size += p.nbytes
            p.register_post_accumulate_grad_hook(self.hook)
        self.begin()

    def begin(self):
        self.ready, self.sent = set(), []

    def forward(self, *inputs):
        for buffer in self.module.buffers():
            dist.broadcast(buffer, src=0)
        return self.module(*inputs)

    def complete(self, bucket):
        return self.ready.issuperset(bucket)

    def hook(self, p):
        self.ready.add(p)
        while len(self.sent) < len(self.buckets) and self.complete(self.buckets[len(self.sent)]):
            self.send(self.buckets[len(self.sent)])

    def flat(self, bucket):
        return torch.cat([p.grad.flatten() for p in bucket])

    def send(self, bucket):
        flat = self.flat(bucket)
        self.sent.append((bucket, flat, dist.all_reduce(flat, async_op=True)))

    def flush(self):
        for bucket in self.buckets[len(self.sent) :]:
            for p in bucket:
                if p.grad is None:
                    p.grad = torch.zeros_like(p)
            self.send(bucket)

    def finish(self):
        self.flush()
        for bucket, flat, work in self.sent:
            work.wait()
            flat /= dist.get_world_size()
            for p, part in zip(bucket, flat.split([p.numel() for p in bucket])):
                p.grad = part.view_as(p)
        self.begin()


def broadcast_module(module, src=0):
    pass


class BucketedDDP(Common):
    pass
