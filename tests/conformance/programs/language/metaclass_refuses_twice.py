"""A metaclass whose register refuses a name that it has, and which forbids to set attributes."""

REGISTER, MADE = {}, []


class Meta(type):
    def __new__(cls, name, bases, body, **options):
        if name in REGISTER:
            raise KeyError(name)
        REGISTER[name] = super().__new__(cls, name, bases, body)
        return REGISTER[name]

    def __init__(cls, name, bases, body, **options):
        super().__init__(name, bases, body)
        MADE.append((name, options))

    def __setattr__(cls, name, value):
        raise AttributeError(f"{name} is fixed")


class Base(metaclass=Meta):
    size = 1


class Child(Base, kind="leaf"):
    size = 2


def main(rank, world_size):
    class Late(Base):
        pass

    return sorted(REGISTER), MADE, REGISTER["Child"] is Child, Child.size
