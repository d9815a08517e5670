"""Answers that read or write other files. {course}, {out}, {other} and {pid} are filled in."""

from __future__ import annotations

from tests.grading.hostile.attack import Attack


def _attack(name: str, lines: str, *, bare: bool = False) -> Attack:
    body = "\n".join("    " + line for line in lines.strip("\n").splitlines())
    head = "import ctypes, glob, os, socket, sys"
    source = f"{head}\ndef attack(rank, world_size, *inputs):\n{body}"
    return Attack(name, source, says="contained", bare=bare)


READING = (
    _attack(
        "solutions, other submissions, results",
        """
return tried(
    solutions=lambda: open("{course}/solutions/02_blocking_p2p.ipynb").read(),
    checks=lambda: open("{course}/tests/conftest.py").read(),
    other=lambda: open("{other}").read(),
    secret=lambda: open("{out}/secret").read(),
    listing=lambda: os.listdir("{out}"),
    folder=lambda: os.listdir("{course}/solutions"),
)
""",
        bare=True,
    ),
    _attack(
        "this machine's secrets",
        """
return tried(
    shadow=lambda: open("/etc/shadow").read(),
    home=lambda: os.listdir(os.path.expanduser("~root/.ssh")) or os.listdir("/home"),
    disks=lambda: open("/dev/vda", "rb").read(1),
    memory=lambda: open("/dev/mem", "rb").read(1),
    kernel=lambda: open("/proc/kcore", "rb").read(1),
    log=lambda: open("/var/log/dpkg.log").read(1),
)
""",
        bare=True,
    ),
    _attack(
        "the grader's environment and memory",
        """
libc = ctypes.CDLL(None, use_errno=True)
pids = [1, {pid}, os.getppid()]
buffer = ctypes.create_string_buffer(16)
return tried(
    environ=lambda: [open(f"/proc/{{p}}/environ", "rb").read() for p in pids],
    mine=lambda: open("/proc/{pid}/environ", "rb").read(),
    mem=lambda: [open(f"/proc/{{p}}/mem", "rb") for p in pids],
    maps=lambda: [open(f"/proc/{{p}}/maps").read() for p in pids],
    fds=lambda: [os.readlink(f"/proc/{{p}}/fd/{{n}}") for p in pids for n in os.listdir(f"/proc/{{p}}/fd")],
    root=lambda: [os.listdir(os.path.join("/proc", str(p), "root")) for p in pids],
    cwd=lambda: [os.readlink(f"/proc/{{p}}/cwd") for p in pids],
    ptrace=lambda: min(libc.ptrace(16, p, 0, 0) for p in pids) >= 0,
    vm=lambda: min(libc.syscall(310, p, buffer, 1, buffer, 1, 0) for p in pids) >= 0,
    pidfd=lambda: libc.syscall(438, os.pidfd_open(1), 0, 0) >= 0,
)
""",
    ),
    _attack(
        "descriptors that it has inherited",
        """
allowed = ("/tmp", "/dev/null", "anon_inode", "socket:", "pipe:", "/memfd:", os.environ["TMPDIR"])
found = [os.readlink(f"/proc/self/fd/{{n}}") for n in os.listdir("/proc/self/fd")
    if os.path.lexists(f"/proc/self/fd/{{n}}")]
odd = [path for path in found if not path.startswith(allowed)]
for n in range(4, 1024):
    try:
        if socket.socket(fileno=os.dup(n)).family == socket.AF_UNIX:
            odd.append(f"socket {{n}}")
    except OSError:
        pass
return tried(odd=lambda: bool(odd))
""",
    ),
    _attack(
        "other ranks' inputs and memory",
        """
import time
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(4, 0, 0, 0, 0)
dist.barrier()
others = [int(p) for p in os.listdir("/proc") if p.isdigit() and int(p) not in (1, os.getpid(), os.getppid())]
others = others or [1 << 22]  # in a world of one rank there is nobody
found = tried(
    environ=lambda: [open(f"/proc/{{p}}/environ", "rb").read() for p in others],
    mem=lambda: [open(f"/proc/{{p}}/mem", "rb") for p in others],
    fds=lambda: [os.readlink(f"/proc/{{p}}/fd/0") for p in others],
    ptrace=lambda: libc.ptrace(16, others[0], 0, 0) >= 0,
    pidfd=lambda: libc.syscall(438, os.pidfd_open(others[0]), 3, 0) >= 0,
)
dist.barrier()
return found
""",
    ),
    _attack(
        "tests and checks among what it may import",
        """
import importlib
return tried(
    checks=lambda: importlib.import_module("helpers.exercises.nb04_collectives.split_sum"),
    judge=lambda: importlib.import_module("helpers.checks.judge"),
    compare=lambda: importlib.import_module("helpers.checks.compare"),
    truth=lambda: importlib.import_module("helpers.exercises.nb04_collectives.shared"),
    grader=lambda: importlib.import_module("helpers.grading.grader"),
    draw=lambda: importlib.import_module("helpers.checks.registry").get("split_sum").draw(),
)
""",
        bare=True,
    ),
)

WRITING = (
    _attack(
        "results, caches, reports, other submissions",
        """
return tried(
    record=lambda: open("{out}/records/mallory.json", "w"),
    cache=lambda: os.mkdir("{out}/cache"),
    other=lambda: open("{other}", "a"),
    rights=lambda: os.chmod("{other}", 0o600),
    times=lambda: os.utime("{other}"),
    owner=lambda: os.chown("{other}", os.getuid(), os.getgid()),
    cut=lambda: os.truncate("{other}", 0),
    remove=lambda: os.unlink("{out}/records/bela.json"),
    rename=lambda: os.rename("{other}", "{other}.old"),
    link=lambda: os.link("{other}", os.environ["TMPDIR"] + "/link"),
)
""",
    ),
    _attack(
        "the course, site-packages, python, the system",
        """
import helpers, json
return tried(
    course=lambda: open(helpers.__file__, "a"),
    new=lambda: open(os.path.dirname(helpers.__file__) + "/exercises/judge.py", "w"),
    cached=lambda: os.listdir(os.path.dirname(helpers.__file__) + "/__pycache__") and
        open(glob.glob(os.path.dirname(helpers.__file__) + "/__pycache__/*")[0], "a"),
    torch=lambda: open(torch.__file__, "a"),
    stdlib=lambda: open(json.__file__, "a"),
    python=lambda: open(sys.executable, "a"),
    site=lambda: open(os.path.dirname(os.path.dirname(torch.__file__)) + "/x.pth", "w"),
    etc=lambda: open("/etc/passwd", "a"),
    ld=lambda: open("/etc/ld.so.preload", "w"),
    root=lambda: open("/x", "w"),
    sysctl=lambda: open("/proc/sys/kernel/hostname", "w").write("x"),
    core=lambda: open("/proc/sys/kernel/core_pattern", "w"),
    terminal=lambda: open("/dev/tty", "w"),
)
""",
    ),
)

KERNEL = (
    _attack(
        "namespaces, mounts, programs for the kernel",
        """
libc = ctypes.CDLL(None, use_errno=True)
call = lambda *args: libc.syscall(*args) >= 0
return tried(
    unshare=lambda: call(272, 0x10000000),
    unshare_mount=lambda: call(272, 0x20000),
    setns=lambda: call(308, os.open("/proc/self/ns/net", 0), 0),
    clone=lambda: call(56, 0x10000000 | 17, 0, 0, 0, 0),
    clone3=lambda: call(435, ctypes.create_string_buffer(88), 88),
    mount=lambda: libc.mount(b"x", b"/tmp", b"tmpfs", 0, None) == 0,
    umount=lambda: libc.umount2(b"/proc", 2) == 0,
    chroot=lambda: libc.chroot(b"/tmp") == 0,
    open_tree=lambda: call(428, -100, b"/", 1),
    bpf=lambda: call(321, 0, ctypes.create_string_buffer(128), 128),
    perf=lambda: call(298, ctypes.create_string_buffer(128), 0, -1, -1, 0),
    uring=lambda: call(425, 8, ctypes.create_string_buffer(120)),
    keyctl=lambda: call(250, 0, -3, 0),
    add_key=lambda: call(248, b"user", b"x", b"y", 1, -3),
    userfaultfd=lambda: call(323, 0),
    ptrace=lambda: libc.ptrace(0, 0, 0, 0) == 0,
    module=lambda: call(313, 0, b"", 0),
    clock=lambda: libc.clock_settime(0, ctypes.create_string_buffer(16)) == 0,
    x32=lambda: call(0x40000000 + 39),
    tiocsti=lambda: libc.ioctl(0, 0x5412, b"x") == 0,
    setuid=lambda: os.setresuid(0, 0, 0) if os.getuid() else False,
)
""",
    ),
)
"""The numbers of system calls are for x86-64; on other machines each is a different call, or none."""
