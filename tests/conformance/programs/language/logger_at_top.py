"""A logger at module level."""

import logging

logger = logging.getLogger("train")
logger.setLevel(logging.INFO)


def main(rank, world_size):
    logger.info("not shown: nobody handles it")
    logger.warning("step on rank %d", rank)
    return logger.name
