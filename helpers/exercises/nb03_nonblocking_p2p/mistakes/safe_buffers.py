# %% a buffer for each message
# What counts is each tensor that is filled or sent, a clone as well. Make two before the loop and take
# them in turn, `i % 2`.
def safe_buffers(fill, count, length, dst):
    works, kept = [], []
    for i in range(count):
        kept.append(torch.empty(length))
        fill(kept[-1], i)
        works.append(dist.isend(kept[-1], dst))
    for work in works:
        work.wait()


# %% sends a copy each time
# What counts is each tensor that is filled or sent, a clone as well. Make two before the loop and take
# them in turn, `i % 2`.
def safe_buffers(fill, count, length, dst):
    buffer, works = torch.empty(length), []
    for i in range(count):
        fill(buffer, i)
        works.append(dist.isend(buffer.clone(), dst))
    for work in works:
        work.wait()


# %% pairs of messages, an odd one is left over | deadlocked
# A rank has sent fewer messages than `count`, {count}.
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
