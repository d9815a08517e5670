"""Logging that nobody set up: warnings go to stderr, infos nowhere."""

import logging


def main(rank, world_size):
    logging.warning("seen on rank %d", rank)
    logging.info("not seen")
    return logging.getLogger().level, len(logging.getLogger("fresh").handlers)
