"""A character model in the style of nanoGPT: DDP, gradient accumulation, warm-up, clipping."""

import math
import os
from contextlib import nullcontext

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

batch_size, block_size, n_embd, max_iters, warmup = 4, 16, 16, 6, 2
gradient_accumulation_steps = 2
learning_rate, grad_clip = 1e-2, 1.0


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln = nn.LayerNorm(n_embd)
        self.attention = nn.Linear(n_embd, 3 * n_embd)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 32), nn.GELU(), nn.Linear(32, n_embd))

    def forward(self, x):
        q, k, v = self.attention(self.ln(x)).chunk(3, dim=-1)
        x = x + F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.mlp(x)


class GPT(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, n_embd)
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Linear(n_embd, vocabulary)

    def forward(self, idx, targets):
        logits = self.head(self.blocks(self.tokens(idx)))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def get_lr(it):
    if it < warmup:
        return learning_rate * (it + 1) / warmup
    return learning_rate * 0.5 * (1 + math.cos(math.pi * (it - warmup) / (max_iters - warmup)))


dist.init_process_group(backend="gloo")
rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
master_process = rank == 0
torch.manual_seed(1337)
text = "to be or not to be, that is the question " * 20
vocabulary = sorted(set(text))
data = torch.tensor([vocabulary.index(c) for c in text])
model = GPT(len(vocabulary))
model = DDP(model)
raw_model = model.module
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
generator = torch.Generator().manual_seed(1337 + rank)


def get_batch():
    starts = torch.randint(len(data) - block_size, (batch_size,), generator=generator)
    x = torch.stack([data[i : i + block_size] for i in starts])
    y = torch.stack([data[i + 1 : i + 1 + block_size] for i in starts])
    return x, y


best = 1e9
for it in range(max_iters):
    for group in optimizer.param_groups:
        group["lr"] = get_lr(it)
    total = 0.0
    for micro_step in range(gradient_accumulation_steps):
        x, y = get_batch()
        last = micro_step == gradient_accumulation_steps - 1
        with nullcontext() if last else model.no_sync():
            loss = model(x, y) / gradient_accumulation_steps
            loss.backward()
        total += loss.item()
    torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    mean = torch.tensor(total)
    dist.all_reduce(mean, op=dist.ReduceOp.AVG)
    if mean < best:
        best = mean
        dist.barrier()
    if master_process:
        print(f"iter {it}: loss {mean.item():.4f}")
dist.destroy_process_group()
