"""A class that is made within main cannot be pickled."""

import pickle


def main(rank, world_size):
    class Inner:
        pass

    try:
        pickle.dumps(Inner())
    except (AttributeError, pickle.PicklingError) as error:
        return "local object" in str(error)
