"""DataLoader workers that prepare images, with a generator and a worker's own seed."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Images(Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, index):
        image = torch.full((1, 6, 6), float(index)) / 24
        image[0, index % 6] += 1.0
        return image, index % 6


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(
        torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.Flatten(), torch.nn.Linear(64, 6))
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sampler = DistributedSampler(Images(), shuffle=True, seed=1)
    loader = DataLoader(
        Images(), batch_size=4, sampler=sampler, num_workers=2, persistent_workers=True
    )
    seen = 0
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += len(images)
        if rank == 0:
            print(f"epoch {epoch}: loss {loss.item():.4f}")
    print(f"rank {rank} has seen {seen} images")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
