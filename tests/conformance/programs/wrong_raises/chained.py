"""An error raised from another one."""

FAILS = "RuntimeError"


def main(rank, world_size):
    try:
        int("no number")
    except ValueError as error:
        raise RuntimeError("cannot read the config") from error
