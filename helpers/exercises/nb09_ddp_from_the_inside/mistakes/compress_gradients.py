# %% does not divide
# This is the sum over the ranks. With a hook, DDP does not divide: the hook must return the mean.
def compress_gradients(state, bucket):
    half = bucket.buffer().half()
    future = dist.all_reduce(half, async_op=True).get_future()
    return future.then(lambda f: f.value()[0].to(bucket.buffer().dtype))


# %% divides after the sum
# A number that is sent, or the sum over the ranks, is beyond float16's largest, 65,504. The mean is not:
# send each rank's share of it, divided by the world size and not scaled up.
def compress_gradients(state, bucket):
    half = bucket.buffer().half()
    future = dist.all_reduce(half, async_op=True).get_future()
    return future.then(lambda f: f.value()[0].to(bucket.buffer().dtype) / dist.get_world_size())


# %% AVG, which adds first
# A number that is sent, or the sum over the ranks, is beyond float16's largest, 65,504. The mean is not:
# send each rank's share of it, divided by the world size and not scaled up.
def compress_gradients(state, bucket):
    half = bucket.buffer().half()
    future = dist.all_reduce(half, op=dist.ReduceOp.AVG, async_op=True).get_future()
    return future.then(lambda f: f.value()[0].to(bucket.buffer().dtype))


# %% divides twice
# The sum is divided by the world size twice.
def compress_gradients(state, bucket):
    half = (bucket.buffer() / dist.get_world_size()).half()
    future = dist.all_reduce(half, op=dist.ReduceOp.AVG, async_op=True).get_future()
    return future.then(lambda f: f.value()[0].to(bucket.buffer().dtype))


# %% a Work, and a wait in the hook
# Return `work.get_future().then(...)` without waiting: DDP waits at the end of backward.
def compress_gradients(state, bucket):
    half = bucket.buffer().half() / dist.get_world_size()
    dist.all_reduce(half, async_op=True).wait()
    future = torch.futures.Future()
    future.set_result(half.to(bucket.buffer().dtype))
    return future


# %% everybody keeps their own
# This is the rank's own gradient: reduce it over the ranks, and return the future of that.
def compress_gradients(state, bucket):
    future = torch.futures.Future()
    future.set_result(bucket.buffer().half().to(bucket.buffer().dtype))
    return future


# %% the Work's own future | crashed
# The value of an all_reduce's future is a list with one tensor: return `future.then(...)` with a function
# that returns `done.value()[0]`.
def compress_gradients(state, bucket):
    half = bucket.buffer().half() / dist.get_world_size()
    return dist.all_reduce(half, async_op=True).get_future()


# %% the list in place of its tensor | crashed
# The value of an all_reduce's future is a list with one tensor: return `future.then(...)` with a function
# that returns `done.value()[0]`.
def compress_gradients(state, bucket):
    half = (bucket.buffer() / dist.get_world_size()).to(torch.float16)
    future = dist.all_reduce(half, async_op=True).get_future()
    return future.then(lambda f: f.value().to(bucket.buffer().dtype))


# %% the list comes back | crashed
# The value of an all_reduce's future is a list with one tensor: return `future.then(...)` with a function
# that returns `done.value()[0]`.
def compress_gradients(state, bucket):
    half = (bucket.buffer() / dist.get_world_size()).to(torch.float16)
    future = dist.all_reduce(half, async_op=True).get_future()
    return future.then(lambda f: f.value())


# %% the future in place of its value | crashed
# The function in `.then(...)` gets the future, not its value: use `done.value()`, a list of tensors.
def compress_gradients(state, bucket):
    half = (bucket.buffer() / dist.get_world_size()).to(torch.float16)
    future = dist.all_reduce(half, async_op=True).get_future()
    return future.then(lambda f: f[0].to(bucket.buffer().dtype))
