# %% wrong: all waits at the end | crashed | says: buffer of message 0, which nobody has waited for


# %% wrong: waits after the fill | crashed | says: buffer of message 0, which nobody has waited for


# %% wrong: waits one message too late | crashed | says: buffer of message 0, which nobody has waited for


# %% wrong: a buffer for each message | wrong | says: \d buffers; two are enough


# %% wrong: pairs of messages, an odd one is left over | deadlocked | says: has sent fewer messages than


# %% wrong: every second message is not waited for | crashed | says: buffer of message 1, which nobody has waited for


# %% wrong: fills both, sends both, waits for both | wrong | says: as soon as its buffer is full


# %% wrong: waits for the later of two messages, and fills the earlier's buffer | crashed | says: message 0, which nobody has waited for
def safe_buffers(fill, count, length, dst):
    buffers = [torch.empty(length), torch.empty(length)]
    works = []
    for i in range(0, count, 2):
        if i:
            works[i - 1].wait()
        for j in range(i, min(i + 2, count)):
            fill(buffers[j % 2], j)
            works.append(dist.isend(buffers[j % 2], dst))
    for i, work in enumerate(works):
        if i % 2 == 0 or i == len(works) - 1:
            work.wait()


# %% wrong: a message is sent before it is filled | crashed | says: nobody has waited for
def safe_buffers(fill, count, length, dst):
    buffers = [torch.empty(length), torch.empty(length)]
    works = []
    for i in range(count):
        if i >= 2:
            works[i - 2].wait()
        works.append(dist.isend(buffers[i % 2], dst))
        fill(buffers[i % 2], i)
    for work in works[-2:]:
        work.wait()


# %% wrong: each message with a tag of its own | deadlocked | says: The tags differ
def safe_buffers(fill, count, length, dst):
    buffers = [torch.empty(length), torch.empty(length)]
    works = []
    for i in range(count):
        if i >= 2:
            works[i - 2].wait()
        fill(buffers[i % 2], i)
        works.append(dist.isend(buffers[i % 2], dst, tag=i + 1))
    for work in works[-2:]:
        work.wait()
