"""An asynchronous generator and an asynchronous context manager."""

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
