"""A producer and a consumer of an asyncio queue."""

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
