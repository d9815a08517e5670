# %% captured | subprocess.run with captured output, while the other rank waits.
import subprocess
import sys

import torch.distributed as dist


def main(rank, world_size):
    said = ""
    if rank == 0:
        code = "import time; time.sleep(1.5); print('from a child')"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        said = done.stdout.strip()
    dist.barrier()
    return said


# %% check_fails | check=True raises if the child fails.
import subprocess

FAILS = "CalledProcessError"


def main(rank, world_size):
    subprocess.run(["sh", "-c", f"exit {rank}"], check=True)


# %% communicate | Popen.communicate sends text to a child and reads its answer.
import subprocess


def main(rank, world_size):
    pipe = subprocess.PIPE
    child = subprocess.Popen(["sort", "-r"], stdin=pipe, stdout=pipe, text=True)
    out, _ = child.communicate("a\nc\nb\n")
    return out.split(), child.returncode


# %% exit_code | A child's exit code and its error stream.
import subprocess


def main(rank, world_size):
    done = subprocess.run(["sh", "-c", "echo oh >&2; exit 7"], capture_output=True, text=True)
    return done.returncode, done.stderr


# %% in_thread | A thread runs a child process and captures its output.
import subprocess
import threading

import torch.distributed as dist


def main(rank, world_size):
    said = []

    def call():
        done = subprocess.run(["sh", "-c", "sleep 1.5; echo late"], capture_output=True, text=True)
        said.append(done.stdout.strip())

    if rank == 1:
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    dist.barrier()
    return said


# %% no_such_program | A missing program.
import subprocess

FAILS = "FileNotFoundError"


def main(rank, world_size):
    subprocess.run(["no-such-program-anywhere"])


# %% os_system | os.system and os.popen.
import os


def main(rank, world_size):
    with os.popen("echo piped") as pipe:
        said = pipe.read()
    return os.system("exit 3") >> 8, said


# %% prints_itself | A child's prints are part of the rank's output.
import subprocess


def main(rank, world_size):
    print("before", flush=True)
    subprocess.run(["echo", f"the child of rank {rank}"], check=True)
    print("after", flush=True)


# %% python_child | A Python child imports torch and has this rank's environment.
import subprocess
import sys

LIKE = "torchrun"


def main(rank, world_size):
    code = "import os, torch; print(os.environ['RANK'], torch.ones(2).sum().item())"
    return subprocess.check_output([sys.executable, "-c", code], text=True).strip()


# %% timed_out | A child that takes too long: TimeoutExpired, caught.
import subprocess

import torch.distributed as dist


def main(rank, world_size):
    said = "in time"
    if rank == 0:
        try:
            subprocess.run(["sleep", "30"], timeout=1)
        except subprocess.TimeoutExpired:
            said = "too late"
    dist.barrier()
    return said
