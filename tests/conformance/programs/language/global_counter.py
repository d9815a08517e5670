"""A global that main changes: each rank its own."""

count = 0


def main(rank, world_size):
    global count
    for _ in range(rank + 1):
        count += 1
    return count
