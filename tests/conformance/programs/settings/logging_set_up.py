"""The module level configures logging; every rank logs."""

import logging
import sys

logging.basicConfig(level=logging.INFO, format="%(levelname)s of %(name)s: %(message)s")
logging.getLogger("quiet").setLevel(logging.ERROR)
logging.getLogger("own").addHandler(logging.StreamHandler(sys.stdout))


def main(rank, world_size):
    logging.info("rank %d", rank)
    logging.getLogger("quiet").info("not shown")
    logging.getLogger("own").warning("shown twice")
    return logging.root.level, len(logging.root.handlers), logging.getLogger("quiet").level
