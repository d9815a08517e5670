# %% right: waits for the message that left this buffer last
def safe_buffers(fill, count, length, dst):
    buffers = [torch.empty(length), torch.empty(length)]
    works = []
    for i in range(count):
        if i >= 2:
            works[i - 2].wait()
        fill(buffers[i % 2], i)
        works.append(dist.isend(buffers[i % 2], dst))
    for work in works[-2:]:
        work.wait()


# %% right: one message in flight while the next is filled, buffers as rows
def safe_buffers(fill, count, length, dst):
    pair = torch.zeros(2, length)
    work = None
    for i in range(count):
        row = pair[i % 2]
        fill(row, i)
        if work is not None:
            work.wait()
        work = dist.isend(row, dst)
    if work is not None:
        work.wait()


# %% right: a slot for each buffer
class Slot:
    def __init__(self, length):
        self.tensor, self.work = torch.empty(length), None

    def free(self):
        if self.work:
            self.work.wait()
            self.work = None


def safe_buffers(fill, count, length, dst):
    slots = [Slot(length) for _ in range(2)]
    for i in range(count):
        slot = slots[i & 1]
        slot.free()
        fill(slot.tensor, i)
        slot.work = dist.isend(slot.tensor, dst=dst)
    [slot.free() for slot in slots]


# %% right: swapping two names
def safe_buffers(fill, count, length, dst):
    now, later = torch.empty(length), torch.empty(length)
    fill(now, 0)
    for i in range(count):
        work = dist.isend(now, dst)
        if i + 1 < count:
            fill(later, i + 1)
        work.wait()
        now, later = later, now


# %% wrong: all waits at the end | crashed | says: buffer of message 0, which nobody has waited for
def safe_buffers(fill, count, length, dst):
    buffers = [torch.empty(length), torch.empty(length)]
    works = []
    for i in range(count):
        fill(buffers[i % 2], i)
        works.append(dist.isend(buffers[i % 2], dst))
    for work in works:
        work.wait()


# %% wrong: waits after the fill | crashed | says: buffer of message 0, which nobody has waited for
def safe_buffers(fill, count, length, dst):
    buffers = [torch.empty(length), torch.empty(length)]
    works = []
    for i in range(count):
        fill(buffers[i % 2], i)
        if i >= 2:
            works[i - 2].wait()
        works.append(dist.isend(buffers[i % 2], dst))
    for work in works[-2:]:
        work.wait()


# %% wrong: waits one message too late | crashed | says: buffer of message 0, which nobody has waited for
def safe_buffers(fill, count, length, dst):
    buffers = [torch.empty(length), torch.empty(length)]
    works = []
    for i in range(count):
        if i > 2:
            works[i - 3].wait()
        fill(buffers[i % 2], i)
        works.append(dist.isend(buffers[i % 2], dst))
    for work in works[-3:]:
        work.wait()


# %% wrong: one buffer, waits at once | wrong | says: so it idles
def safe_buffers(fill, count, length, dst):
    buffer = torch.empty(length)
    for i in range(count):
        fill(buffer, i)
        dist.isend(buffer, dst).wait()


# %% wrong: two buffers, but each message is waited for at once | wrong | says: fill the other buffer
def safe_buffers(fill, count, length, dst):
    buffers = [torch.empty(length), torch.empty(length)]
    for i in range(count):
        fill(buffers[i % 2], i)
        dist.isend(buffers[i % 2], dst).wait()


# %% wrong: a blocking send | wrong | says: so it idles
def safe_buffers(fill, count, length, dst):
    buffers = [torch.empty(length), torch.empty(length)]
    for i in range(count):
        fill(buffers[i % 2], i)
        dist.send(buffers[i % 2], dst)


# %% wrong: the last two are never waited for | wrong | says: never waits for its isend
def safe_buffers(fill, count, length, dst):
    buffers = [torch.empty(length), torch.empty(length)]
    works = []
    for i in range(count):
        if i >= 2:
            works[i - 2].wait()
        fill(buffers[i % 2], i)
        works.append(dist.isend(buffers[i % 2], dst))


# %% wrong: every second message is not waited for | crashed | says: buffer of message 1, which nobody has waited for
def safe_buffers(fill, count, length, dst):
    buffers = [torch.empty(length), torch.empty(length)]
    works = []
    for i in range(count):
        if i >= 2 and i % 2 == 0:
            works[i - 2].wait()
        fill(buffers[i % 2], i)
        works.append(dist.isend(buffers[i % 2], dst))
    for i, work in enumerate(works):
        if i % 2 or i == len(works) - 1 or i == len(works) - 2:
            work.wait()


# %% wrong: always sends to rank 0 | deadlocked | says: rank 1 sends with tag 1 .*while rank 0 receives with tag 0
def safe_buffers(fill, count, length, dst):
    buffers = [torch.empty(length), torch.empty(length)]
    works = []
    for i in range(count):
        if i >= 2:
            works[i - 2].wait()
        fill(buffers[i % 2], i)
        works.append(dist.isend(buffers[i % 2], 1 - dist.get_rank() % 2, tag=i))
    for work in works[-2:]:
        work.wait()


# %% wrong: waits for all at the end, for some a second time | crashed | says: called twice on one transfer
def safe_buffers(fill, count, length, dst):
    buffers = [torch.empty(length), torch.empty(length)]
    works = []
    for i in range(count):
        if i >= 2:
            works[i - 2].wait()
        fill(buffers[i % 2], i)
        works.append(dist.isend(buffers[i % 2], dst))
    for work in works:
        work.wait()


# %% wrong: fills both, sends both, waits for both | wrong | says: as soon as its buffer is full
def safe_buffers(fill, count, length, dst):
    buffers = torch.empty(2, length)
    for start in range(0, count, 2):
        pair = range(start, min(start + 2, count))
        for i in pair:
            fill(buffers[i % 2], i)
        works = [dist.isend(buffers[i % 2], dst) for i in pair]
        for work in works:
            work.wait()


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
