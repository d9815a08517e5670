"""Act as a `python` whose arguments are run by a fork of the template, and wait: see `tests/template.py`.

    python -IS hand_over.py SOCKET WORDS...

Signals are passed to the fork, which dies with this process. Started often, the module imports little.
"""

import array
import json
import os
import select
import signal
import socket
import sys

PASSED_ON = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGABRT,
)
OPTIONS = ("-P", "-u", "-B")


def main() -> None:
    path, *words = sys.argv[1:]
    first, *more = [word for word in words if word not in OPTIONS]
    is_option = first.startswith("-") and first not in {"-c", "-m"}
    # multiprocessing and mpiexec expect the processes that they start to be children.
    is_child = first == "-c" and more[0].startswith("from multiprocessing")
    # Notebook 18 prints whole stacks of programs with a DEBUG_PORT. Stacks of forks begin in template.py.
    if is_option or is_child or {"PMI_RANK", "DEBUG_PORT"} & set(os.environ):
        os.execv(sys.executable, [sys.executable, *words])
    fds = [int(name) for name in os.listdir("/proc/self/fd")]
    fds = [
        fd for fd in fds if os.path.exists(f"/proc/self/fd/{fd}")
    ]  # without the one for the listing itself
    request = {
        "words": words,
        "env": dict(os.environ),
        "cwd": os.getcwd(),
        "fds": fds,
        "session": os.getsid(0) == os.getpid(),
    }
    # A signal may arrive as soon as the fork runs, before this process knows to whom to pass it.
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as template:
        template.connect(path)
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))
        template.sendmsg([json.dumps(request).encode()], [rights])
        pid = json.loads(template.recv(1000))["pid"]
        with open("/proc/self/comm", "w") as comm:  # read by template.py: children of this process
            comm.write(f"fork-{pid}")
        wake, write = os.pipe()  # a signal just before a wait also ends the wait
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for number in PASSED_ON:
            signal.signal(number, lambda number, _: os.kill(pid, number))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
        for fd in fds:  # a pipe's reader sees its end once the fork has closed it
            os.close(fd)
        while template not in select.select([template, wake], [], [])[0]:
            os.read(wake, 4096)
        said = template.recv(1000)
    code = json.loads(said)["exit"] if said else -signal.SIGKILL
    if code < 0:  # a signal ended the fork, and now this process
        if code not in {-signal.SIGKILL, -signal.SIGSTOP}:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


main()
