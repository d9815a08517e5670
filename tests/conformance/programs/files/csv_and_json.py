"""Each rank writes its own file as csv and json, and reads it again."""

import csv
import json
import os


def main(rank, world_size):
    with open(f"rank{rank}.csv", "w", newline="") as file:
        csv.writer(file).writerows([["step", "loss"], [1, 0.5 * rank]])
    with open(f"rank{rank}.csv", newline="") as file:
        rows = list(csv.reader(file))
    with open(f"rank{rank}.json", "w") as file:
        json.dump(rows, file)
    with open(f"rank{rank}.json") as file:
        again = json.load(file)
    os.unlink(f"rank{rank}.csv")
    os.unlink(f"rank{rank}.json")
    return rows == again, rows
