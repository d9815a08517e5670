"""Arguments by argparse, logging on each rank, records that may be broken."""

import argparse
import atexit
import json
import logging
import sys

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--steps", type=int, default=3)
parser.add_argument("--name", default="run")
args = parser.parse_args()

dist.init_process_group("gloo")
rank = dist.get_rank()
logging.basicConfig(
    level=logging.INFO if rank == 0 else logging.WARNING,
    stream=sys.stdout,
    format="%(levelname)s %(message)s",
)
logger = logging.getLogger(args.name)
logger.info("arguments %s", json.dumps(vars(args), sort_keys=True))
atexit.register(lambda: print(f"rank {rank} closes its log"))

records = ['{"value": 1}', '{"value": 2', '{"value": 3}', '{"value": 4}']
weight = torch.zeros(1)
for step in range(args.steps):
    try:
        value = float(json.loads(records[step])["value"])
    except json.JSONDecodeError:
        logger.warning("record %d is broken", step)
        value = 0.0
    gradient = weight - value - rank
    dist.all_reduce(gradient, op=dist.ReduceOp.AVG)
    weight -= args.lr * gradient
    logger.info("step %d weight %.4f", step, weight.item())
dist.barrier()
sys.exit(0 if weight.isfinite() else 3)
