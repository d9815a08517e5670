# %% does not divide
# With a hook DDP does not divide any more: the hook must return the mean.
def compress_gradients(state, bucket):
    half = bucket.buffer().half()
    future = dist.all_reduce(half, async_op=True).get_future()
    return future.then(lambda f: f.value()[0].to(bucket.buffer().dtype))


# %% divides after the sum
# float16 ends at 65,504, and the sum over the ranks is larger. Divide by the world size before you add,
# and the mean fits.
def compress_gradients(state, bucket):
    half = bucket.buffer().half()
    future = dist.all_reduce(half, async_op=True).get_future()
    return future.then(lambda f: f.value()[0].to(bucket.buffer().dtype) / dist.get_world_size())


# %% AVG, which adds first
# float16 ends at 65,504, and the sum over the ranks is larger. Divide by the world size before you add,
# and the mean fits.
def compress_gradients(state, bucket):
    half = bucket.buffer().half()
    future = dist.all_reduce(half, op=dist.ReduceOp.AVG, async_op=True).get_future()
    return future.then(lambda f: f.value()[0].to(bucket.buffer().dtype))


# %% divides twice
# It is divided by the world size twice.
def compress_gradients(state, bucket):
    half = (bucket.buffer() / dist.get_world_size()).half()
    future = dist.all_reduce(half, op=dist.ReduceOp.AVG, async_op=True).get_future()
    return future.then(lambda f: f.value()[0].to(bucket.buffer().dtype))


# %% a Work, and a wait in the hook
# Return `work.get_future().then(...)`: DDP waits for it at the end.
def compress_gradients(state, bucket):
    half = bucket.buffer().half() / dist.get_world_size()
    dist.all_reduce(half, async_op=True).wait()
    future = torch.futures.Future()
    future.set_result(half.to(bucket.buffer().dtype))
    return future


# %% everybody keeps their own
# This is the rank's own gradient: add up over the ranks, and return the future of that.
def compress_gradients(state, bucket):
    future = torch.futures.Future()
    future.set_result(bucket.buffer().half().to(bucket.buffer().dtype))
    return future


# %% the Work's own future | crashed
# The value of an all_reduce's future is a list, as a collective can have several tensors. Here it has
# one: `done.value()[0]`, which a function in `.then(...)` hands on.
def compress_gradients(state, bucket):
    half = bucket.buffer().half() / dist.get_world_size()
    return dist.all_reduce(half, async_op=True).get_future()


# %% the list in place of its tensor | crashed
# The value of an all_reduce's future is a list, as a collective can have several tensors. Here it has
# one: `done.value()[0]`, which a function in `.then(...)` hands on.
def compress_gradients(state, bucket):
    half = (bucket.buffer() / dist.get_world_size()).to(torch.float16)
    future = dist.all_reduce(half, async_op=True).get_future()
    return future.then(lambda f: f.value().to(bucket.buffer().dtype))


# %% the list comes back | crashed
# The value of an all_reduce's future is a list, as a collective can have several tensors. Here it has
# one: `done.value()[0]`, which a function in `.then(...)` hands on.
def compress_gradients(state, bucket):
    half = (bucket.buffer() / dist.get_world_size()).to(torch.float16)
    future = dist.all_reduce(half, async_op=True).get_future()
    return future.then(lambda f: f.value())


# %% the future in place of its value | crashed
# The callback is given the future itself: its value is `done.value()`, a list of tensors.
def compress_gradients(state, bucket):
    half = (bucket.buffer() / dist.get_world_size()).to(torch.float16)
    future = dist.all_reduce(half, async_op=True).get_future()
    return future.then(lambda f: f[0].to(bucket.buffer().dtype))
