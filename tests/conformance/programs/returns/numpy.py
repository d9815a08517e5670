"""Arrays and scalars of numpy."""

import numpy as np


def main(rank, world_size):
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    return (
        x,
        x.T,
        x[0, 1],
        np.float32(0.1),
        np.array(3.5),
        np.array([True, False]),
        np.zeros((0, 2)),
    )
