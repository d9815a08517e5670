"""asyncio.wait_for gives up on time."""

import asyncio

FAILS = "TimeoutError"


async def never():
    await asyncio.Event().wait()


def main(rank, world_size):
    asyncio.run(asyncio.wait_for(never(), timeout=0.5))
