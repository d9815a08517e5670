# %% generator | An asynchronous generator and an asynchronous context manager.
import asyncio
from contextlib import asynccontextmanager


@asynccontextmanager
async def opened(log):
    log.append("open")
    yield log
    log.append("close")


async def count(n):
    for i in range(n):
        await asyncio.sleep(0)
        yield i


async def work():
    async with opened([]) as log:
        log += [i async for i in count(3)]
    return log


def main(rank, world_size):
    return asyncio.run(work())


# %% in_thread | An event loop in a separate thread, called from main, while the other rank waits.
import asyncio
import threading

import torch.distributed as dist


async def slow():
    await asyncio.sleep(1.5)
    return "done"


def main(rank, world_size):
    got = None
    if rank == 0:
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        got = asyncio.run_coroutine_threadsafe(slow(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
    dist.barrier()
    return got


# %% long_sleep | A rank sleeps in asyncio for two seconds; the other waits in a collective.
import asyncio

import torch
import torch.distributed as dist


def main(rank, world_size):
    if rank == 1:
        asyncio.run(asyncio.sleep(2))
    x = torch.ones(1)
    dist.all_reduce(x)
    return x


# %% no_running_loop | There is no running loop in main, as in any script.
import asyncio

FAILS = "RuntimeError"


def main(rank, world_size):
    return asyncio.get_running_loop()


# %% queue | A producer and a consumer of an asyncio queue.
import asyncio


async def run(n):
    queue, got = asyncio.Queue(1), []

    async def produce():
        for i in range(n):
            await queue.put(i)
        await queue.put(None)

    task = asyncio.create_task(produce())
    while (item := await queue.get()) is not None:
        got.append(item)
    await task
    return got


def main(rank, world_size):
    return asyncio.run(run(4 + rank))


# %% run | asyncio.run within main: sleeps overlap.
import asyncio


async def nap(i):
    await asyncio.sleep(0.1)
    return i * 2


async def together():
    return await asyncio.gather(*[nap(i) for i in range(4)])


def main(rank, world_size):
    return asyncio.run(together())


# %% subprocess | asyncio starts a child and reads its output.
import asyncio


async def call():
    child = await asyncio.create_subprocess_exec(
        "sh", "-c", "sleep 0.3; echo hi", stdout=asyncio.subprocess.PIPE
    )
    out, _ = await child.communicate()
    return out.decode().strip(), child.returncode


def main(rank, world_size):
    return asyncio.run(call())


# %% timeout | asyncio.wait_for times out.
import asyncio

FAILS = "TimeoutError"


async def never():
    await asyncio.Event().wait()


def main(rank, world_size):
    asyncio.run(asyncio.wait_for(never(), timeout=0.5))


# %% to_thread | A blocking receive in asyncio.to_thread, next to a task that counts.
import asyncio

import torch
import torch.distributed as dist


async def receive(x):
    await asyncio.to_thread(dist.recv, x, 0)
    return x


def main(rank, world_size):
    if rank == 0:
        dist.send(torch.tensor([5.0]), dst=1)
        return None
    return asyncio.run(receive(torch.zeros(1)))
