"""finally runs on the rank that fails, and can be seen."""

FAILS = "IndexError"


def main(rank, world_size):
    try:
        return [1, 2][5]
    finally:
        print("cleaned up")
