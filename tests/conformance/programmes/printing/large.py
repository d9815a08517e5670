"""Twenty thousand lines, of which the last one counts most."""


def main(rank, world_size):
    for i in range(20_000):
        print(f"line {i:06} of rank {rank}")
    print("the last line")
