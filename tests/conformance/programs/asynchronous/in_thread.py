"""An event loop in a thread of its own, asked from main, while the other rank waits."""

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
