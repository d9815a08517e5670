# %% right: in the order of certainty
import signal


def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        return "timeout"
    if returncode < 0:
        return signal.Signals(-returncode).name
    last = stderr.strip().splitlines()[-1]
    return last.split(":")[0].split(".")[-1]


# %% right: a table of signals, a regular expression
import re
from signal import Signals

NAMES = {-int(s): s.name for s in Signals}


def exception_in(text):
    found = re.findall(r"^(?:\w+\.)*(\w+)(?::.*)?$", text, re.MULTILINE)
    return found[-1]


def diagnose_exit(returncode: int, stderr: str, timed_out: bool) -> str:
    return "timeout" if timed_out else NAMES.get(returncode) or exception_in(stderr)


# %% right: partition and match
def diagnose_exit(returncode, stderr, timed_out):
    import signal

    match (timed_out, returncode):
        case (True, _):
            return "timeout"
        case (_, code) if code < 0:
            return signal.Signals(abs(code)).name
    *_, last = stderr.rstrip("\n").split("\n")
    name, _, _ = last.partition(":")
    return name.rpartition(".")[2]


# %% wrong: every failure is one of three that were seen | wrong | says: is not '\w+'. It was given
def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        return "timeout"
    return "SIGKILL" if returncode < 0 else "RuntimeError"


# %% right: a loop from behind
import signal


def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        return "timeout"
    for number in signal.Signals:
        if number == -returncode:
            return number.name
    for line in reversed(stderr.splitlines()):
        if line.strip():
            return line.partition(":")[0].split(".")[-1].strip()
