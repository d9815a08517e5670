"""An error of a class of the cell."""

FAILS = "DataError"


class DataError(ValueError):
    def __init__(self, row, why):
        super().__init__(f"row {row}: {why}")
        self.row = row


def main(rank, world_size):
    raise DataError(3, "no label")
