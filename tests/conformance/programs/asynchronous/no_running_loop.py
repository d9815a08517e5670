"""There is no running loop in main, as in any script."""

import asyncio

FAILS = "RuntimeError"


def main(rank, world_size):
    return asyncio.get_running_loop()
