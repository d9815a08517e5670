# %% a buffer for each message
# More than two tensors are filled or sent; a clone counts as well. Make two before the loop and use them in
# turn, `i % 2`.
def safe_buffers(fill, count, length, dst):
    works, kept = [], []
    for i in range(count):
        kept.append(torch.empty(length))
        fill(kept[-1], i)
        works.append(dist.isend(kept[-1], dst))
    for work in works:
        work.wait()


# %% sends a copy each time
# More than two tensors are filled or sent; a clone counts as well. Make two before the loop and use them in
# turn, `i % 2`.
def safe_buffers(fill, count, length, dst):
    buffer, works = torch.empty(length), []
    for i in range(count):
        fill(buffer, i)
        works.append(dist.isend(buffer.clone(), dst))
    for work in works:
        work.wait()


# %% pairs of messages, an odd one is left over | deadlocked
# A rank sends fewer than {count} messages, so rank `dst` waits for the rest. `count` may be odd.
def safe_buffers(fill, count, length, dst):
    one, two = torch.empty(length), torch.empty(length)
    fill(one, 0)
    a = dist.isend(one, dst)
    if count == 1:
        return a.wait()
    fill(two, 1)
    b = dist.isend(two, dst)
    for i in range(2, count - 1, 2):
        a.wait()
        fill(one, i)
        a = dist.isend(one, dst)
        b.wait()
        fill(two, i + 1)
        b = dist.isend(two, dst)
    a.wait()
    b.wait()


# %% always two messages first | crashed
# Two messages are filled before the loop, but `count` may be 1.
def safe_buffers(fill, count, length, dst):
    buffers = [torch.empty(length), torch.empty(length)]
    works = []
    for i in range(2):
        fill(buffers[i], i)
        works.append(dist.isend(buffers[i], dst))
    for i in range(2, count):
        works[i % 2].wait()
        fill(buffers[i % 2], i)
        works[i % 2] = dist.isend(buffers[i % 2], dst)
    for work in works:
        work.wait()
