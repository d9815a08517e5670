"""The logging module, set up by basicConfig with the rank in each line."""

import logging


def main(rank, world_size):
    logging.basicConfig(
        level=logging.INFO, format=f"[{rank}] %(levelname)s %(message)s", force=True
    )
    logging.info("step %d", 3)
    logging.getLogger("mine").warning("careful")
    logging.debug("not shown")
