"""Mixed precision: bfloat16 in the forward pass, float32 weights."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = int(os.environ["RANK"])
device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
model = DDP(
    torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.GELU(), torch.nn.Linear(32, 4)).to(device)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
torch.manual_seed(50 + rank)
for step in range(4):
    x = torch.randn(16, 8, device=device)
    labels = x.abs().argmax(-1) % 4
    with torch.autocast(str(device).partition(":")[0], dtype=torch.bfloat16):
        logits = model(x)
        loss = torch.nn.functional.cross_entropy(logits.float(), labels)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if rank == 0:
        print(f"step {step} {logits.dtype} loss {loss.item():.3f}")
dist.destroy_process_group()
