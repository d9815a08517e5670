"""asyncio starts a child and reads its output."""

import asyncio


async def call():
    child = await asyncio.create_subprocess_exec(
        "sh", "-c", "sleep 0.3; echo hi", stdout=asyncio.subprocess.PIPE
    )
    out, _ = await child.communicate()
    return out.decode().strip(), child.returncode


def main(rank, world_size):
    return asyncio.run(call())
