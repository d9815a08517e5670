import re
import signal


def last_line(stderr):
    return stderr.strip().splitlines()[-1]


# %% the signal before the timeout
# A process whose time is up is killed, so its returncode is negative, too. Test `timed_out` first.
def diagnose_exit(returncode, stderr, timed_out):
    if returncode < 0:
        return signal.Signals(-returncode).name
    if timed_out:
        return "timeout"
    return last_line(stderr).split(":")[0].split(".")[-1]


# %% SIGKILL counts as a timeout
# SIGKILL is taken for a timeout, but other processes can send it as well. Only `timed_out` says whether the
# time was up.
def diagnose_exit(returncode, stderr, timed_out):
    if returncode == -9:
        return "timeout"
    if returncode < 0:
        return signal.Signals(-returncode).name
    return last_line(stderr).split(":")[0].split(".")[-1]


# %% stderr before the returncode
# A negative returncode always means a signal, whatever the program printed before. Test it before you read
# stderr.
def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        return "timeout"
    if stderr:
        return last_line(stderr).split(":")[0].split(".")[-1]
    return signal.Signals(-returncode).name


# %% signal and its number
# This is the signal's number. `signal.Signals(number).name` is its name.
def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        return "timeout"
    if returncode < 0:
        return f"signal {-returncode}"
    return last_line(stderr).split(":")[0].split(".")[-1]


# %% the signal's number
# This is the signal's number. `signal.Signals(number).name` is its name.
def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        return "timeout"
    if returncode < 0:
        return -returncode
    return last_line(stderr).split(":")[0].split(".")[-1]


# %% every signal is a segmentation fault
# Not every signal is SIGSEGV: `signal.Signals(-returncode).name` is the name of the one that arrived.
def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        return "timeout"
    if returncode < 0:
        return "SIGSEGV"
    return last_line(stderr).split(":")[0].split(".")[-1]


# %% every signal is SIGKILL
# Not every signal is SIGKILL: `signal.Signals(-returncode).name` is the name of the one that arrived.
def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        return "timeout"
    if returncode < 0:
        return "SIGKILL"
    return last_line(stderr).split(":")[0].split(".")[-1]


# %% positive numbers are looked for | crashed
# A process that a signal ended has a negative returncode: minus the signal's number.
def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        return "timeout"
    if not stderr:
        return signal.Signals(returncode).name
    return last_line(stderr).split(":")[0].split(".")[-1]


# %% the first exception in the text
# This is not the exception that ended the program. stderr may name others before it and in the message: the
# name is at the beginning of the last line.
def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        return "timeout"
    if returncode < 0:
        return signal.Signals(-returncode).name
    found = re.search(r"(\w+Error|InvalidOperation)", stderr)
    return found[1] if found else "exception"


# %% the first traceback
# This is not the exception that ended the program. stderr may name others before it and in the message: the
# name is at the beginning of the last line.
def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        return "timeout"
    if returncode < 0:
        return signal.Signals(-returncode).name
    body = stderr.split("Traceback (most recent call last):")[1]
    for line in body.splitlines():
        if line and not line.startswith(" "):
            return line.split(":")[0].split(".")[-1]


# %% the last word that ends in Error
# You look for words that end in "Error". A message may contain such words, and not every exception's name
# ends in "Error": take the beginning of the last line.
def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        return "timeout"
    if returncode < 0:
        return signal.Signals(-returncode).name
    return (re.findall(r"\w+Error", stderr) or ["exception"])[-1]


# %% the last word that ends in Error, or a timeout
# You look for words that end in "Error". A message may contain such words, and not every exception's name
# ends in "Error": take the beginning of the last line.
def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        return "timeout"
    if returncode < 0:
        return signal.Signals(-returncode).name
    return (re.findall(r"(\w+Error)\b", stderr) or ["timeout"])[-1]


# %% with the module's name
# This is the exception's name with its module. Return only what follows the last dot.
def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        return "timeout"
    if returncode < 0:
        return signal.Signals(-returncode).name
    return last_line(stderr).split(":")[0]


# %% the whole last line
# This is the whole last line of stderr. Return only the exception's name: cut the line at the first colon,
# then take what follows the last dot.
def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        return "timeout"
    if returncode < 0:
        return signal.Signals(-returncode).name
    return last_line(stderr)


# %% the newline at the end is not removed
# stderr ends with a newline, so after `split("\n")` its last part is empty: use `stderr.strip()` first.
def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        return "timeout"
    if returncode < 0:
        return signal.Signals(-returncode).name
    return stderr.split("\n")[-1].split(":")[0].split(".")[-1]


# %% the last dot of the whole line
# The line is cut at a dot of the message. Cut it at the first colon, and only then at the last dot.
def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        return "timeout"
    if returncode < 0:
        return signal.Signals(-returncode).name
    return last_line(stderr).split(".")[-1].split(":")[0]


# %% cut at the first dot
# This is the first part of the module's name. The exception's name follows the last dot.
def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        return "timeout"
    if returncode < 0:
        return signal.Signals(-returncode).name
    return last_line(stderr).split(":")[0].split(".")[0]


# %% nothing is returned
# The function returns None in every case. Hand the name back with `return`; printing it is not enough.
def diagnose_exit(returncode, stderr, timed_out):
    if timed_out:
        print("timeout")
    elif returncode < 0:
        print(signal.Signals(-returncode).name)
    else:
        print(last_line(stderr).split(":")[0].split(".")[-1])
