"""A child that is Python imports torch and sees this rank's environment."""

import subprocess
import sys

LIKE = "torchrun"


def main(rank, world_size):
    code = "import os, torch; print(os.environ['RANK'], torch.ones(2).sum().item())"
    return subprocess.check_output([sys.executable, "-c", code], text=True).strip()
