"""A closure with nonlocal."""


def counter():
    count = 0

    def more():
        nonlocal count
        count += 1
        return count

    return more


def main(rank, world_size):
    more = counter()
    return [more() for _ in range(rank + 2)]
