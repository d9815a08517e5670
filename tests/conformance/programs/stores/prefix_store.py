"""PrefixStore keeps two users of one store apart."""

import torch.distributed as dist


def main(rank, world_size):
    base = dist.HashStore()
    one, two = dist.PrefixStore("one", base), dist.PrefixStore("two", base)
    one.set("key", "first")
    two.set("key", "second")
    return one.get("key"), two.get("key"), base.check(["one/key", "two/key", "key"])
