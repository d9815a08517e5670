# %% the killed process is taken for the cause
# Its time was up, and only then was it killed: that is a "timeout".
import signal


def diagnose_exit(returncode, stderr, timed_out):
    if returncode < 0:
        return signal.Signals(-returncode).name
    if timed_out:
        return "timeout"
    return stderr.strip().splitlines()[-1].split(":")[0].split(".")[-1]


# %% stderr before the returncode
# A negative returncode is a signal, whatever stands in stderr.
import signal


def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        return "timeout"
    if stderr:
        return stderr.strip().splitlines()[-1].split(":")[0].split(".")[-1]
    return signal.Signals(-returncode).name


# %% the signal's number
# A negative returncode is minus a signal's number: signal.Signals has the names.
def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        return "timeout"
    if returncode < 0:
        return f"signal {-returncode}"
    return stderr.strip().splitlines()[-1].split(":")[0].split(".")[-1]


# %% the first exception in the text
# The last line of stderr begins with the exception that ended the process.
import re
import signal


def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        return "timeout"
    if returncode < 0:
        return signal.Signals(-returncode).name
    found = re.search(r"(\w+Error|InvalidOperation)", stderr)
    return found[1] if found else "exception"


# %% with the module's name
# Give the exception's name without its module: what stands after the last dot.
import signal


def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        return "timeout"
    if returncode < 0:
        return signal.Signals(-returncode).name
    return stderr.strip().splitlines()[-1].split(":")[0]


# %% printed, not returned
# The function must return a string in every case.
import signal


def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        print("timeout")
    elif returncode < 0:
        print(signal.Signals(-returncode).name)
    else:
        print(stderr.strip().splitlines()[-1].split(":")[0].split(".")[-1])


# %% waits for more to read
# The last line of stderr begins with the exception that ended the process.
def diagnose_exit(returncode, stderr, timed_out):
    while not stderr:
        pass
    return stderr


# %% the last word that ends in Error
# The last line of stderr begins with the exception that ended the process.
def diagnose_exit(returncode, stderr, timed_out):
    import re
    import signal

    if timed_out:
        return "timeout"
    if returncode < 0:
        return signal.Signals(-returncode).name
    return (re.findall(r"\w+Error", stderr) or ["exception"])[-1]


# %% what follows the last dot of the last line
# The last line of stderr begins with the exception that ended the process.
def diagnose_exit(returncode, stderr, timed_out):
    import signal

    if timed_out:
        return "timeout"
    if returncode < 0:
        return signal.Signals(-returncode).name
    return stderr.strip().splitlines()[-1].split(".")[-1].split(":")[0]


# %% torn at the first dot
# The last line of stderr begins with the exception that ended the process.
import signal


def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        return "timeout"
    if returncode < 0:
        return signal.Signals(-returncode).name
    return stderr.strip().splitlines()[-1].split(":")[0].split(".")[0]


# %% SIGKILL counts as a timeout
# A negative returncode is a signal, whatever stands in stderr.
import signal


def diagnose_exit(returncode, stderr, timed_out):
    if returncode == -9:
        return "timeout"
    if returncode < 0:
        return signal.Signals(-returncode).name
    return stderr.strip().splitlines()[-1].split(":")[0].split(".")[-1]
