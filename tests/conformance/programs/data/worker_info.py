"""An iterable dataset shares its numbers among its workers."""

from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Numbers(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        return iter(range(info.id, 8, info.num_workers))


def main(rank, world_size):
    loader = DataLoader(Numbers(), batch_size=None, num_workers=2)
    return sorted(loader)
