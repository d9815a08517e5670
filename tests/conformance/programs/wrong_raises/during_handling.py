"""An error while another one is handled."""

FAILS = "AttributeError"


def main(rank, world_size):
    try:
        1 / 0
    except ZeroDivisionError as error:
        return error.no_such_attribute
