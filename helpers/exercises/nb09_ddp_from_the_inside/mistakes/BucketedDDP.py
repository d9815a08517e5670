def broadcast_module(module, src=0):
    for tensor in [*module.parameters(), *module.buffers()]:
        dist.broadcast(tensor.detach(), src)


class Common(torch.nn.Module):
    def __init__(self, module, bucket_bytes):
        super().__init__()
        self.module = module
        self.broadcast()
        self.buckets, size = [], bucket_bytes + 1
        for p in [p for p in module.parameters() if p.requires_grad][::-1]:
            if size + p.nbytes > bucket_bytes:
                self.buckets.append([])
                size = 0
            self.buckets[-1].append(p)
            size += p.nbytes
            p.register_post_accumulate_grad_hook(self.hook)
        self.ready, self.sent = set(), []

    def broadcast(self):
        broadcast_module(self.module)

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
# Ranks sent different buckets in one call, as their gradients become ready in different orders, or not at
# all. Start buckets in one fixed order: bucket 1 waits until bucket 0 has started, even if it is complete.
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


# %% ready is not emptied
# The first step is right, a later one is not: the gradients of the first step still count as ready. Clear
# in finish() what is ready.
class BucketedDDP(Common):
    def finish(self):
        self.flush()
        self.unpack()
        self.sent.clear()


# %% the last bucket is left out of the means
# Some gradients are never averaged: in finish(), copy the means of every bucket back into `p.grad`.
class BucketedDDP(Common):
    def unpack(self):
        for bucket, flat, work in self.sent:
            work.wait()
            flat /= dist.get_world_size()
            for p, part in zip(bucket[:-1], flat.split([p.numel() for p in bucket])):
                p.grad = part.view_as(p)


# %% the sum
# This is the sum over {n} ranks: divide it by the world size.
class BucketedDDP(Common):
    def unpack(self):
        for bucket, flat, work in self.sent:
            work.wait()
            for p, part in zip(bucket, flat.split([p.numel() for p in bucket])):
                p.grad = part.view_as(p)


# %% ready is whoever has a gradient
# The first step is right, a later one is not: gradients that are left from the last step (zeros, with
# set_to_none=False) are taken as ready. Record in the hook which gradients are ready, and clear that in
# finish().
class BucketedDDP(Common):
    def complete(self, bucket):
        return all(p.grad is not None for p in bucket)


# %% always float32 | crashed
# The means have another dtype than the gradients: keep the gradients' dtype.
class BucketedDDP(Common):
    def flat(self, bucket):
        return super().flat(bucket).float()


# %% divided twice
# The sum is divided by the world size twice.
class BucketedDDP(Common):
    def flat(self, bucket):
        return super().flat(bucket) / dist.get_world_size()


# %% nothing is broadcast at the start
# The ranks start with different weights: call `broadcast_module(module)` in __init__.
class BucketedDDP(Common):
    def broadcast(self):
        pass


# %% a bucket is sent one gradient too early
# A bucket is sent before all its gradients are ready: count how many are still missing, and start the
# bucket when none is missing.
class BucketedDDP(Common):
    def complete(self, bucket):
        return sum(p not in self.ready for p in bucket) <= 1

    def flat(self, bucket):
        return torch.cat(
            [torch.zeros_like(p).flatten() if p.grad is None else p.grad.flatten() for p in bucket]
        )


# %% means are never cleared
# The first step is right, a later one is not: what is kept of a step, such as the list of Works, is not
# cleared in finish(), so the next step uses it again.
class BucketedDDP(Common):
    def __init__(self, module, bucket_bytes):
        super().__init__(module, bucket_bytes)
        self.left = [len(bucket) for bucket in self.buckets]

    def hook(self, p):
        for k, bucket in enumerate(self.buckets):
            self.left[k] -= any(p is q for q in bucket)
        while len(self.sent) < len(self.buckets) and self.left[len(self.sent)] == 0:
            self.send(self.buckets[len(self.sent)])

    def finish(self):
        self.flush()
        self.unpack()


# %% a first bucket without parameters | crashed
# A parameter that is larger than `bucket_bytes` by itself starts a new bucket here even if the current one
# is empty, so an empty bucket is left behind. Start a new bucket only if the current one has parameters.
class BucketedDDP(Common):
    def __init__(self, module, bucket_bytes):
        super().__init__(module, bucket_bytes)
        self.buckets, size = [[]], 0
        for p in reversed([p for p in module.parameters() if p.requires_grad]):
            if size + p.nbytes > bucket_bytes:
                self.buckets.append([])
                size = 0
            self.buckets[-1].append(p)
            size += p.nbytes

    def flat(self, bucket):
        return torch.cat(
            [torch.zeros(0, dtype=bucket[0].dtype), *(p.grad.flatten() for p in bucket)]
        )
