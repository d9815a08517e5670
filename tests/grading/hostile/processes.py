"""Answers that exit, hang, fork or fill: each costs only its own exercise, and leaves nothing behind."""

from __future__ import annotations

from tests.grading.hostile.attack import Attack

_SAY = 'return "contained" if not found else "REACHED " + " ".join(found)'


def _attack(name: str, lines: str, *outcomes: str, says: str = "", bare: bool = False) -> Attack:
    body = "\n".join("    " + line for line in lines.strip("\n").splitlines())
    head = "import ctypes, os, signal, subprocess, sys, threading, time"
    source = f"{head}\ndef attack(rank, world_size, *inputs):\n{body}"
    return Attack(name, source, outcomes or ("wrong",), says, bare)


ENDINGS = (
    _attack("os._exit", "os._exit(0)", "crashed", says="exited with code 0"),
    _attack("sys.exit", "sys.exit('passed')", "crashed", says="SystemExit"),
    _attack("SIGKILL to itself", "os.kill(os.getpid(), 9)", "crashed", says="SIGKILL"),
    _attack("a fault in C", "ctypes.string_at(0)", "crashed", says="SIGSEGV"),
    _attack(
        "what it does at its end",
        """
import atexit, faulthandler
atexit.register(lambda: os.write(3, b"x" * 1000))
faulthandler.register(signal.SIGTERM, chain=True)
return 1
""",
        "crashed",
        says="WireError",
    ),
    _attack(
        "all signals to everybody else",
        """
if rank == 0:
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
        try:
            os.kill(-1, number)
        except OSError:
            pass
return "contained"
""",
        "crashed",
        "wrong",
    ),
    _attack(
        "signals to the rank server",
        """
for number in (*range(1, 32), *range(34, 65)):
    try:
        os.kill(1, number)
    except OSError:
        pass
return "contained"
""",
        says="contained",
    ),
    _attack(
        "limits and rights of the rank server",
        """
import resource
return tried(
    files=lambda: resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0)),
    processes=lambda: resource.prlimit(1, resource.RLIMIT_NPROC, (0, 0)),
    cpu=lambda: resource.prlimit(1, resource.RLIMIT_CPU, (0, 0)),
    more=lambda: resource.setrlimit(resource.RLIMIT_DATA, (-1, -1)),
    score=lambda: open("/proc/1/oom_score_adj", "w").write("1000"),
)
""",
        says="contained",
    ),
    _attack(
        "a folder for the next world that is a file",
        """
import glob
for number in range(1, 200):
    for path in (f"/tmp/worlds/world-{number}", f"/tmp/world-{number}"):
        try:
            open(path, "x").close()
        except OSError:
            pass
return "contained"
""",
        says="contained",
    ),
    _attack(
        "the folder of worlds replaced",
        """
import shutil
if rank == 0:
    shutil.rmtree("/tmp/worlds", ignore_errors=True)
    os.symlink("/proc/1/root", "/tmp/worlds")
return "contained"
""",
        "wrong",
        "crashed",
    ),
    _attack(
        "a fault file that is a pipe without end",
        """
import tempfile
path = os.path.join(tempfile.gettempdir(), "fault")
if os.path.exists(path):
    os.unlink(path)
os.mkfifo(path)
os.kill(os.getpid(), signal.SIGSEGV)
""",
        "crashed",
        says="SIGSEGV",
    ),
)
"""Attacks that end themselves, or try to end the processes around them."""

REMAINS = (
    _attack(
        "a daemon",
        """
for n in range(5):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(1, 32):
                try:
                    signal.signal(number, signal.SIG_IGN)
                except OSError:
                    pass
            while True:
                time.sleep(1)
        os._exit(0)
subprocess.Popen(["sleep", "1000"], start_new_session=True)
return "contained"
""",
        says="contained",
    ),
    _attack(
        "threads that do not end",
        """
for _ in range(50):
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
return "contained"
""",
        says="contained",
    ),
    _attack(
        "threads for which its end must wait",
        """
for _ in range(50):
    threading.Thread(target=time.sleep, args=(1000,)).start()
return "contained"
""",
        "timed out",
    ),
    _attack(
        "state for the next exercise",
        """
for folder in {"/tmp", "/dev/shm", os.environ["TMPDIR"], os.path.expanduser("~")}:
    open(os.path.join(folder, f"kept-{rank}"), "w").write("hidden inputs")
    os.makedirs(os.path.join(folder, f"deep-{rank}", *"abcdefgh" * 20), exist_ok=True)
    os.chmod(os.path.join(folder, f"deep-{rank}"), 0)
return "contained"
""",
        says="contained",
    ),
    _attack(
        "state of the exercise before",
        """
import glob
found = [p for f in ("/tmp", "/dev/shm", "~") for p in glob.glob(os.path.expanduser(f) + "/*-?")]
others = [p for p in os.listdir("/proc") if p.isdigit() and p != "1"]
if len(others) > world_size:
    found.append(f"processes {len(others)}")
"""
        + _SAY,
        says="contained",
    ),
    _attack(
        "System V's shared memory, queues, semaphores",
        """
libc = ctypes.CDLL(None, use_errno=True)
found = [name for name, id in (
    ("shm", libc.shmget(7, 4096, 0o1600)), ("sem", libc.semget(7, 1, 0o1600)),
    ("msg", libc.msgget(7, 0o1600)), ("mq", libc.mq_open(b"/x", 0o102, 0o600, None)),
    ("memfd", libc.memfd_create(b"x", 0))) if id >= 0]
"""
        + _SAY,
        says="contained",
    ),
)
"""Attacks handed in one after the other, in this order: the fourth searches for the third's remains."""

FLOODS = (
    _attack(
        "3 GB in one piece", "return len(bytearray(3 << 30))", "too much memory", says="MemoryError"
    ),
    _attack("a tensor of 3 GB", "return torch.zeros(3 << 28).sum()", "too much memory"),
    _attack(
        "output without end",
        "while True:\n    print('x' * 100_000)",
        "flooded",
    ),
    _attack(
        "files without end",
        """
written = 0
try:
    for n in range(1000):
        with open(f"/tmp/big-{rank}-{n}", "wb") as file:
            for _ in range(1000):
                written += file.write(bytes(1 << 20))
except OSError:
    pass
return "contained" if written <= 512 << 20 else "REACHED the disk"
""",
        says="contained",
    ),
    _attack(
        "room for files is there again",
        """
open(f"/tmp/mine-{rank}", "wb").write(bytes(40 << 20))
open(f"/dev/shm/mine-{rank}", "wb").write(bytes(40 << 20))
return "contained"
""",
        says="contained",
    ),
    _attack(
        "descriptors without end",
        """
kept = []
try:
    while True:
        kept.append(os.open("/dev/null", 0))
except OSError:
    for fd in kept:
        os.close(fd)
return "contained" if len(kept) < 2000 else "REACHED too many"
""",
        says="contained",
    ),
)
"""Attacks that request too much of a resource, and quickly get the allowed amount."""

BOMBS = (
    _attack(
        "a fork bomb",
        """
if os.fork() == 0:
    while True:
        try:
            os.fork()
        except OSError:
            time.sleep(0.01)
return 1
""",
        "wrong",
        "crashed",
        "too many processes",
    ),
    _attack(
        "a thread bomb",
        """
try:
    while True:
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
except RuntimeError:
    return "contained"
""",
        "wrong",
        "crashed",
        "too many processes",
    ),
    _attack(
        "shared memory that no limit of a process counts",
        """
import mmap
area = mmap.mmap(-1, 1 << 30)
for at in range(0, 1 << 30, 4096):
    area[at] = 1
return 1
""",
        "too much memory",
        says="all ranks together",
    ),
    _attack(
        "memory of many processes, each below its limit",
        """
for _ in range(8):
    if os.fork() == 0:
        kept = b"x" * (150 << 20)
        signal.pause()
signal.sigtimedwait([signal.SIGUSR1], 5)
return 1
""",
        "too much memory",
        says="all ranks together",
    ),
    _attack(
        "sockets whose buffers are the kernel's memory",
        """
import socket
for _ in range(4):
    if os.fork() == 0:
        kept = [socket.socketpair() for _ in range(100)]
        signal.pause()
signal.sigtimedwait([signal.SIGUSR1], 5)
return 1
""",
        "too many files",
        says="sockets",
    ),
    _attack(
        "files that are empty, without end",
        """
for n in range(10_000):
    open(f"/tmp/{rank}-{n}", "w").close()
signal.sigtimedwait([signal.SIGUSR1], 5)
return 1
""",
        "too many files",
        says="files",
    ),
    _attack(
        "a loop without end in Python",
        """
for number in (signal.SIGXCPU, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
while True:
    pass
""",
        "crashed",
        "timed out",
    ),
    _attack(
        "a loop without end in C",
        """
import re
return re.match("(a+)+$", "a" * 60 + "b")
""",
        "timed out",
    ),
)
"""Attacks under small limits (`SMALL` in the test), so that no machine suffers. In a check `time.sleep`
returns at once, so processes that should keep running wait for a signal."""
