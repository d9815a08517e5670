"""Thirteen kinds of endless answers, each of which uses as much time as it can."""

from __future__ import annotations

_HEAD = "import mmap, os, re, signal, subprocess, sys, threading"
_BODIES = {
    "a busy loop": """
while True:
    pass
""",
    "children in sessions of their own": """
for _ in range(40):
    if not os.fork():
        os.setsid()
        while True:
            pass
while True:
    pass
""",
    "a fork bomb": """
while True:
    try:
        os.fork()
    except OSError:
        pass
""",
    "a pause": "signal.pause()",
    "stopped": """
os.kill(os.getpid(), signal.SIGSTOP)
signal.pause()
""",
    "deaf to signals": """
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
while True:
    pass
""",
    "a loop in C, with the GIL": "re.match('(a+)+$', 'a' * 60 + 'b')",
    "threads": """
def spin():
    while True:
        pass
for _ in range(100):
    threading.Thread(target=spin).start()
spin()
""",
    "allocation": """
kept = []
while True:
    try:
        kept.append(b'x' * (1 << 24))
    except MemoryError:
        kept = []
""",
    "memory areas": """
for _ in range(70):
    if os.fork() == 0:
        kept = []
        try:
            for k in range(60_000):
                kept.append(mmap.mmap(-1, 4096, prot=(mmap.PROT_READ, mmap.PROT_WRITE)[k % 2]))
        except OSError:
            pass
        signal.pause()
signal.pause()
""",
    "printing": """
while True:
    print('x' * 1000, flush=True)
""",
    "barriers": """
while True:
    dist.barrier()
""",
    "programs that start programs": """
again = "subprocess.run([sys.executable, '-c', os.environ['AGAIN']])"
os.environ["AGAIN"] = f"import os, subprocess, sys; {again}"
while True:
    exec(again)
""",
}


def _source(body: str) -> str:
    lines = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    return f"{_HEAD}\ndef attack(rank, world_size, *inputs):\n{lines}"


SPINNING = {name: _source(body) for name, body in _BODIES.items()}
"""Name -> a cell that defines `attack`."""
