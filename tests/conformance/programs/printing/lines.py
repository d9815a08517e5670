"""Each rank prints lines; they stay whole and in order."""


def main(rank, world_size):
    for i in range(5):
        print(f"rank {rank}, line {i}")
    print("a", "b", rank, sep="-", end=".\n")
