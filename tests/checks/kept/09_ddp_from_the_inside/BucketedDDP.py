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


# %% right: broadcast_module is a stub, indices count
def broadcast_module(module, src=0):
    raise NotImplementedError("Exercise 9.1: Broadcast a module")


class BucketedDDP(Common):
    def begin(self):
        self.ready, self.sent = set(), []

    def complete(self, bucket):
        return all(p in self.ready for p in bucket)


# %% right: copies into the gradients that are there
class BucketedDDP(Common):
    def finish(self):
        self.flush()
        for bucket, flat, work in self.sent:
            work.wait()
            at = 0
            for p in bucket:
                p.grad.copy_(flat[at : at + p.numel()].view_as(p) / dist.get_world_size())
                at += p.numel()
        self.begin()


# %% wrong: ready is whoever has a gradient | wrong | says: what does finish\(\) leave behind
class BucketedDDP(Common):
    def complete(self, bucket):
        return all(p.grad is not None for p in bucket)


# %% wrong: always float32 | crashed | says: has the dtype of the gradients
class BucketedDDP(Common):
    def flat(self, bucket):
        return super().flat(bucket).float()


# %% wrong: float32 on the way | wrong | says: hands float32 to all_reduce
class BucketedDDP(Common):
    def flat(self, bucket):
        return super().flat(bucket).float()

    def finish(self):
        self.flush()
        for bucket, flat, work in self.sent:
            work.wait()
            flat /= dist.get_world_size()
            for p, part in zip(bucket, flat.split([p.numel() for p in bucket])):
                p.grad = part.view_as(p).to(p.dtype)
        self.begin()


# %% wrong: divided twice | wrong | says: divided by the world size twice
class BucketedDDP(Common):
    def flat(self, bucket):
        return super().flat(bucket) / dist.get_world_size()


# %% wrong: the means are cut in the wrong order | wrong | says: gradient of
class BucketedDDP(Common):
    def finish(self):
        self.flush()
        for bucket, flat, work in self.sent:
            work.wait()
            flat = flat.flip(0) / dist.get_world_size()
            for p, part in zip(bucket, flat.split([p.numel() for p in bucket])):
                p.grad = part.view_as(p)
        self.begin()


# %% wrong: waits in the hook | wrong | says: wait when all of them are on their way
class BucketedDDP(Common):
    def send(self, bucket):
        super().send(bucket)
        self.sent[-1][2].wait()


# %% wrong: nothing is broadcast at the start | wrong | says: Broadcast the module in __init__
def broadcast_module(module, src=0):
    pass


class BucketedDDP(Common):
    pass
