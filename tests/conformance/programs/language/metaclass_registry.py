"""A metaclass and a base class keep registries that refuse a second class of one name."""


class Registry(type):
    known = {}

    def __new__(mcs, name, bases, members):
        made = super().__new__(mcs, name, bases, members)
        if name in mcs.known:
            raise KeyError(name)
        mcs.known[name] = made
        return made


class Model(metaclass=Registry):
    pass


class Base:
    children = []

    def __init_subclass__(cls, tag="", **kwargs):
        super().__init_subclass__(**kwargs)
        if tag in [other for other, _ in Base.children]:
            raise KeyError(tag)
        Base.children.append((tag, cls))
        cls.tag = tag


class First(Base, tag="first"):
    pass


class Second(First, tag="second"):
    pass


def main(rank, world_size):
    class Third(Second, tag="third"):
        pass

    tags = [tag for tag, _ in Base.children]
    return list(Registry.known), Registry.known["Model"] is Model, tags, Third().tag, First.tag
