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


# %% wrong: the killed process is taken for the cause | wrong | says: only then was it killed
import signal


def diagnose_exit(returncode, stderr, timed_out):
    if returncode < 0:
        return signal.Signals(-returncode).name
    if timed_out:
        return "timeout"
    return stderr.strip().splitlines()[-1].split(":")[0].split(".")[-1]


# %% wrong: stderr before the returncode | wrong | says: A negative returncode is a signal
import signal


def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        return "timeout"
    if stderr:
        return stderr.strip().splitlines()[-1].split(":")[0].split(".")[-1]
    return signal.Signals(-returncode).name


# %% wrong: the signal's number | wrong | says: signal.Signals has the names
def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        return "timeout"
    if returncode < 0:
        return f"signal {-returncode}"
    return stderr.strip().splitlines()[-1].split(":")[0].split(".")[-1]


# %% wrong: the whole last line | wrong | says: is not '\w+'. It was given
import signal


def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        return "timeout"
    if returncode < 0:
        return signal.Signals(-returncode).name
    return stderr.strip().splitlines()[-1]


# %% wrong: the first exception in the text | wrong | says: The last line of stderr
import re
import signal


def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        return "timeout"
    if returncode < 0:
        return signal.Signals(-returncode).name
    found = re.search(r"(\w+Error|InvalidOperation)", stderr)
    return found[1] if found else "exception"


# %% wrong: with the module's name | wrong | says: without its module
import signal


def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        return "timeout"
    if returncode < 0:
        return signal.Signals(-returncode).name
    return stderr.strip().splitlines()[-1].split(":")[0]


# %% wrong: every failure is one of three that were seen | wrong | says: is not '\w+'. It was given
def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        return "timeout"
    return "SIGKILL" if returncode < 0 else "RuntimeError"


# %% wrong: printed, not returned | wrong | says: must return a string
import signal


def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        print("timeout")
    elif returncode < 0:
        print(signal.Signals(-returncode).name)
    else:
        print(stderr.strip().splitlines()[-1].split(":")[0].split(".")[-1])


# %% wrong: positive numbers are looked for | crashed | says: is not a valid Signals
import signal


def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        return "timeout"
    if not stderr:
        return signal.Signals(returncode).name
    return stderr.strip().splitlines()[-1].split(":")[0].split(".")[-1]


# %% wrong: waits for more to read | wrong | says: begins with the exception that ended the process
def diagnose_exit(returncode, stderr, timed_out):
    while not stderr:
        pass
    return stderr


# %% wrong: the last word that ends in Error | wrong | says: begins with the exception that ended the process
def diagnose_exit(returncode, stderr, timed_out):
    import re
    import signal

    if timed_out:
        return "timeout"
    if returncode < 0:
        return signal.Signals(-returncode).name
    return (re.findall(r"\w+Error", stderr) or ["exception"])[-1]


# %% wrong: what follows the last dot of the last line | wrong | says: begins with the exception that ended the process
def diagnose_exit(returncode, stderr, timed_out):
    import signal

    if timed_out:
        return "timeout"
    if returncode < 0:
        return signal.Signals(-returncode).name
    return stderr.strip().splitlines()[-1].split(".")[-1].split(":")[0]


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


# %% wrong: torn at the first dot | wrong | says: begins with the exception that ended the process
import signal


def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        return "timeout"
    if returncode < 0:
        return signal.Signals(-returncode).name
    return stderr.strip().splitlines()[-1].split(":")[0].split(".")[0]


# %% wrong: SIGKILL counts as a timeout | wrong | says: A negative returncode is a signal
import signal


def diagnose_exit(returncode, stderr, timed_out):
    if returncode == -9:
        return "timeout"
    if returncode < 0:
        return signal.Signals(-returncode).name
    return stderr.strip().splitlines()[-1].split(":")[0].split(".")[-1]
