# %% right: compress, divide, add, decompress in then
def compress_gradients(state, bucket):
    buffer = bucket.buffer()
    half = buffer.to(torch.float16) / dist.get_world_size()
    work = dist.all_reduce(half, async_op=True)
    return work.get_future().then(lambda done: done.value()[0].to(buffer.dtype))


# %% right: divides first, writes into the buffer
def compress_gradients(
    state: object, bucket: dist.GradBucket
) -> torch.futures.Future[torch.Tensor]:
    whole = bucket.buffer()
    small = whole.div(dist.get_world_size()).half()

    def decompress(future):
        whole.copy_(future.value()[0])
        return whole

    return dist.all_reduce(small, op=dist.ReduceOp.SUM, async_op=True).get_future().then(decompress)


# %% right: the group that the state may name, the tensor from outside, wait() in the callback
def compress_gradients(state, bucket):
    group = state if state is not None else dist.group.WORLD
    small = bucket.buffer().to(torch.float16).div_(group.size())
    future = dist.all_reduce(small, group=group, async_op=True).get_future()
    return future.then(lambda f: f.wait()[0].to(bucket.buffer().dtype))


# %% wrong: torch's own, asked by name | crashed | says: is what you are to write
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook


def compress_gradients(state, bucket):
    return fp16_compress_hook(state, bucket)


# %% wrong: waits in the hook | wrong | says: waits at once: backward stands still
def compress_gradients(state, bucket):
    half = bucket.buffer().half() / dist.get_world_size()
    dist.all_reduce(half)
    future = torch.futures.Future()
    future.set_result(half.to(bucket.buffer().dtype))
    return future


# %% wrong: returns the tensor | crashed | says: DDP wants a torch.futures.Future
def compress_gradients(state, bucket):
    half = bucket.buffer().half() / dist.get_world_size()
    dist.all_reduce(half)
    return half.to(bucket.buffer().dtype)


# %% wrong: prints nothing, returns nothing | crashed | says: returns NoneType
def compress_gradients(state, bucket):
    half = bucket.buffer().half() / dist.get_world_size()
    dist.all_reduce(half, async_op=True)


# %% wrong: rounds to float16 and sends float32 | wrong | says: torch.float16 is wanted
def compress_gradients(state, bucket):
    buffer = bucket.buffer()
    rounded = (buffer / dist.get_world_size()).half().to(buffer.dtype)
    return dist.all_reduce(rounded, async_op=True).get_future().then(lambda f: f.value()[0])


# %% wrong: bfloat16 | wrong | says: torch.float16 is wanted
def compress_gradients(state, bucket):
    half = bucket.buffer().to(torch.bfloat16) / dist.get_world_size()
    future = dist.all_reduce(half, async_op=True).get_future()
    return future.then(lambda f: f.value()[0].to(bucket.buffer().dtype))


# %% right: halves are made in a tensor of its own, float32 comes back
def compress_gradients(state, bucket):
    flat = bucket.buffer()
    box = torch.empty(flat.numel(), dtype=torch.float16)
    torch.div(flat, dist.get_world_size(), out=flat)
    box.copy_(flat)
    work = dist.all_reduce(box, async_op=True)
    return work.get_future().then(lambda done: done.value()[0].float())


# %% right: AVG of what was divided, times the world size in float32
def compress_gradients(state, bucket):
    n = dist.get_world_size()
    small = (bucket.buffer() / n).half()
    future = dist.all_reduce(small, async_op=True).get_future()

    def back(done):
        (mean,) = done.value()
        return mean.to(bucket.buffer().dtype)

    return future.then(back)


# %% wrong: two all_reduces for each bucket | wrong | says: calls of all_reduce
def compress_gradients(state, bucket):
    parts = (bucket.buffer() / dist.get_world_size()).half().chunk(2)
    parts = [part.clone() for part in parts] + [torch.zeros(0).half()] * (2 - len(parts))
    futures = [dist.all_reduce(part, async_op=True).get_future() for part in parts]
    whole = torch.futures.collect_all(futures)
    return whole.then(
        lambda done: torch.cat([f.value()[0] for f in done.value()]).to(bucket.buffer().dtype)
    )


# %% wrong: the rank's own half, divided | wrong | says: step 1: p\d:
def compress_gradients(state, bucket):
    half = (bucket.buffer() / dist.get_world_size()).half()
    keep = half.clone()
    work = dist.all_reduce(half, async_op=True)
    return work.get_future().then(lambda _: keep.to(bucket.buffer().dtype))


# %% wrong: the largest | wrong | says: step 1: p\d:
def compress_gradients(state, bucket):
    half = bucket.buffer().half()
    work = dist.all_reduce(half, op=dist.ReduceOp.MAX, async_op=True)
    return work.get_future().then(lambda done: done.value()[0].to(bucket.buffer().dtype))


# %% wrong: waits for its future | crashed | says: the hook waits for its future
def compress_gradients(state, bucket):
    half = (bucket.buffer() / dist.get_world_size()).half()
    future = (
        dist.all_reduce(half, async_op=True).get_future().then(lambda done: done.value()[0].float())
    )
    future.wait()
    return future
