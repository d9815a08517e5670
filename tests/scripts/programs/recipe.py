"""A recipe in the style of torchtune: set up from a configuration, train, save adapters."""

import os
import sys
import tempfile

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

CONFIG = {"lr": "0.01", "epochs": "2", "rank": "2", "seed": "7"}


class Adapter(torch.nn.Module):
    def __init__(self, base, rank):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = torch.nn.Linear(base.in_features, rank, bias=False)
        self.b = torch.nn.Linear(rank, base.out_features, bias=False)
        torch.nn.init.zeros_(self.b.weight)

    def forward(self, x):
        return self.base(x) + self.b(self.a(x))


class LoRARecipe:
    def __init__(self, config):
        self.config = config
        self.is_rank_zero = dist.get_rank() == 0
        folder = config.get("folder") or tempfile.gettempdir()
        self.path = os.path.join(folder, f"adapter-{os.environ['MASTER_PORT']}.pt")

    def setup(self):
        torch.manual_seed(int(self.config["seed"]))
        base = torch.nn.Linear(8, 8)
        self.target = torch.randn(8, 8)
        self.model = DistributedDataParallel(Adapter(base, int(self.config["rank"])))
        trained = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(trained, lr=float(self.config["lr"]))
        generator = torch.Generator().manual_seed(dist.get_rank())
        self.batches = [torch.randn(4, 8, generator=generator) for _ in range(3)]

    def train(self):
        for epoch in range(int(self.config["epochs"])):
            running = torch.zeros(1)
            for batch in self.batches:
                self.optimizer.zero_grad(set_to_none=True)
                loss = (self.model(batch) - batch @ self.target).square().mean()
                loss.backward()
                self.optimizer.step()
                running += loss.detach()
            dist.all_reduce(running)
            if self.is_rank_zero:
                print(f"epoch {epoch}|loss {running.item():.4f}")
            self.save_checkpoint()

    def save_checkpoint(self):
        adapters = {
            k: v for k, v in self.model.module.state_dict().items() if k[:2] in ("a.", "b.")
        }
        if self.is_rank_zero:
            torch.save(adapters, self.path)
        dist.barrier()
        saved = torch.load(self.path)
        print("saved", sorted(saved), f"{saved['b.weight'].abs().sum():.4f}")
        dist.barrier()


def recipe_main():
    dist.init_process_group("gloo")
    config = {**CONFIG, **dict(word.split("=") for word in sys.argv[1:])}
    recipe = LoRARecipe(config)
    recipe.setup()
    recipe.train()
    if recipe.is_rank_zero:
        os.remove(recipe.path)
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(recipe_main())
