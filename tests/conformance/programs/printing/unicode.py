"""Letters of many scripts and a lone surrogate that is escaped."""


def main(rank, world_size):
    print("żółw, 漢字, 🙂, \t|")
    print("\udcff".encode("utf-8", "backslashreplace").decode())
    return "é" * (rank + 1)
