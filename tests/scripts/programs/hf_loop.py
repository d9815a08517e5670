"""A loop in the style of Hugging Face's examples: arguments, a collator, gathered predictions."""

import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


@dataclass
class TrainingArguments:
    learning_rate: float = 0.05
    num_train_epochs: int = 2
    per_device_train_batch_size: int = 4
    seed: int = 42


class Sentences(Dataset):
    def __init__(self, size, seed):
        generator = torch.Generator().manual_seed(seed)
        self.rows = torch.randint(1, 30, (size, 8), generator=generator)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index]
        return {"input_ids": row, "labels": int(row.sum() % 2)}


def collate(features):
    return {
        "input_ids": torch.stack([feature["input_ids"] for feature in features]),
        "labels": torch.tensor([feature["labels"] for feature in features]),
    }


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.EmbeddingBag(30, 8)
        self.output = torch.nn.Linear(8, 2)

    def forward(self, input_ids, labels=None):
        logits = self.output(self.embedding(input_ids))
        loss = None if labels is None else torch.nn.functional.cross_entropy(logits, labels)
        return loss, logits


def gather(tensor):
    parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, tensor)
    return torch.cat(parts)


class Trainer:
    def __init__(self, model, args, train, evaluation):
        self.args, self.train_set, self.eval_set = args, train, evaluation
        self.is_main_process = dist.get_rank() == 0
        self.model = DistributedDataParallel(model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=args.learning_rate)

    def loader(self, dataset, shuffle):
        sampler = DistributedSampler(dataset, shuffle=shuffle, seed=self.args.seed)
        size = self.args.per_device_train_batch_size
        return DataLoader(dataset, batch_size=size, sampler=sampler, collate_fn=collate)

    def train(self):
        loader = self.loader(self.train_set, shuffle=True)
        for epoch in range(self.args.num_train_epochs):
            loader.sampler.set_epoch(epoch)
            self.model.train()
            for batch in loader:
                loss, _ = self.model(**batch)
                loss.backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
            metrics = self.evaluate()
            if self.is_main_process:
                print({"epoch": epoch + 1, **metrics})

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        right = []
        for batch in self.loader(self.eval_set, shuffle=False):
            _, logits = self.model(**batch)
            correct = (logits.argmax(-1) == batch["labels"]).float()
            right.append(gather(correct))
        return {"accuracy": round(torch.cat(right).mean().item(), 4)}


if __name__ == "__main__":
    dist.init_process_group("gloo")
    args = TrainingArguments()
    torch.manual_seed(args.seed)
    Trainer(Classifier(), args, Sentences(32, 0), Sentences(16, 1)).train()
    print("local rank", os.environ["LOCAL_RANK"], "ends")
    dist.destroy_process_group()
