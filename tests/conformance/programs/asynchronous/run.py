"""asyncio.run within main: sleeps overlap."""

import asyncio


async def nap(i):
    await asyncio.sleep(0.1)
    return i * 2


async def together():
    return await asyncio.gather(*[nap(i) for i in range(4)])


def main(rank, world_size):
    return asyncio.run(together())
