# %% wrong: positive numbers are looked for | crashed | says: is not a valid Signals


# %% wrong: waits for more to read | wrong | says: begins with the exception that ended the process


# %% wrong: the whole last line | wrong | says: is not '\w+'. It was given


# %% wrong: the last word that ends in Error | wrong | says: begins with the exception that ended the process


# %% wrong: what follows the last dot of the last line | wrong | says: begins with the exception that ended the process


# %% wrong: every failure is one of three that were seen | wrong | says: is not '\w+'. It was given


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
