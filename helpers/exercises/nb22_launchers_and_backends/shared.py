"""Read a batch script as Slurm and torchrun do, and return its first problem."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import Any

from helpers.views.plain import one_line, plural

_LONG_NAMES = {"J": "job-name", "N": "nodes", "t": "time", "n": "ntasks", "c": "cpus-per-task"}
CPUS_PER_GPU = 8
_COUNT_OPTIONS = {"nnodes": "nodes", "nproc-per-node": "gpus_per_node"}


def find_wrong_sbatch_option(text: str, spec: Mapping[str, Any]) -> str:
    """Return the problem with the lines that Slurm itself reads."""
    lines = text.splitlines()
    if not lines or not lines[0].startswith("#!"):
        return "the first line must say which program runs the script: #!/bin/bash"
    if not re.match(r"#!\s*(/usr)?/bin/(env\s+(-\S+\s+)?)?(ba)?sh\b", lines[0]):
        return f"the first line runs the script with {one_line(lines[0][2:], 40)!r} instead of bash"
    if any(re.match(r"\s*#\s+SBATCH|\s+#SBATCH", line) for line in lines):
        return "Slurm reads a line only if it begins with `#SBATCH`, without spaces"
    options, late = sbatch_options(text)
    if late:
        return f"`{late}` is below a command, where Slurm has stopped reading. Put it at the top"
    wanted = {"job-name": spec["name"], "nodes": spec["nodes"]}
    for option, value in wanted.items():
        if options.get(option) != str(value):
            return _describe_option(option, options.get(option), value)
    tasks = options.get("ntasks-per-node")
    if tasks != "1" and not (tasks is None and options.get("ntasks") == str(spec["nodes"])):
        if tasks == str(spec["gpus_per_node"]):
            return (
                f"--ntasks-per-node={tasks}: srun would start {tasks} torchrun agents on a node. One "
                "is enough, because the agent starts the workers"
            )
        return _describe_option("ntasks-per-node", tasks, 1)
    gpus = options.get("gpus-per-node") or options.get("gres", "").removeprefix("gpu:") or None
    if (gpus or "").rpartition(":")[2] != str(spec["gpus_per_node"]):
        return _describe_option("gpus-per-node", gpus, spec["gpus_per_node"])
    if options.get("cpus-per-gpu") != str(CPUS_PER_GPU):
        wanted_cpus, cpus = CPUS_PER_GPU * spec["gpus_per_node"], options.get("cpus-per-task")
        if cpus is None:
            return (
                f"no `#SBATCH --cpus-per-task={wanted_cpus}`: by default a task has one CPU, on which the "
                "agent and all its workers would run"
            )
        if cpus != str(wanted_cpus):
            return _describe_option("cpus-per-task", cpus, wanted_cpus)
    seconds = seconds_of(options.get("time", ""))
    if seconds != 60 * spec["minutes"]:
        return _describe_time(options.get("time"), seconds, spec["minutes"])
    return ""


def sbatch_options(text: str) -> tuple[dict[str, str], str]:
    """Return {long name: option} for a script, and its first line of options that comes too late."""
    options: dict[str, str] = {}
    commands = False
    for line in text.splitlines():
        if not line.startswith("#SBATCH"):
            commands = commands or bool(line.strip() and not line.startswith("#"))
            continue
        if commands:
            return options, line.strip()
        try:
            words = shlex.split(line.removeprefix("#SBATCH"), comments=True)
        except ValueError:  # a quotation mark is never closed
            words = []
        options |= _by_long_name(words)
    return options, ""


def _by_long_name(words: Sequence[str]) -> dict[str, str]:
    """Return {long name: value} for words of the forms --name=value, --name value, -n value and -nvalue."""
    options, left = {}, list(words)
    while left:
        word = left.pop(0)
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("--"):
            name, value = name[:1], name[1:]
        if not value and not equals and left and not left[0].startswith("-"):
            value = left.pop(0)
        options[_LONG_NAMES.get(name, name)] = value
    return options


def seconds_of(text: str) -> int | None:
    """Return the seconds of a time (m, m:s, h:m:s, d-h, d-h:m or d-h:m:s), or None for other strings."""
    if not re.fullmatch(r"(\d+-)?\d+(:\d+){0,2}", text):
        return None
    days, dash, rest = text.rpartition("-")
    parts = [int(part) for part in rest.split(":")]
    if dash:
        hours, minutes, seconds = [*parts, 0, 0][:3]
    elif len(parts) == 3:
        hours, minutes, seconds = parts
    else:
        hours, (minutes, seconds) = 0, [*parts, 0][:2]
    return (24 * int(days or 0) + hours) * 3600 + 60 * minutes + seconds


def _describe_option(name: str, got: str | None, wanted: object) -> str:
    if got is None:
        return f"no `#SBATCH --{name}={wanted}`"
    return f"--{name} is {got!r} instead of {wanted}"


def _describe_time(got: str | None, seconds: int | None, minutes: int) -> str:
    if got is None:
        return "no `#SBATCH --time=...`: without a limit, the cluster's default ends the job"
    if seconds is None:
        return f"--time={got} is not a time for Slurm. Write minutes as a plain number, or h:m:s"
    return (
        f"--time={got} means {seconds / 60:g} minutes to Slurm; the task asks for {minutes}. A plain "
        "number is minutes, two parts are m:s, and three are h:m:s"
    )


def find_wrong_command(
    found: Mapping[str, Any], spec: Mapping[str, Any], job_id: int, head: str
) -> str:
    """Return the problem with the command passed to srun."""
    said_calls = found.get("calls")
    calls = said_calls if isinstance(said_calls, list) else []
    calls = [[str(word) for word in c] for c in calls if isinstance(c, list)]
    steps = [c for c in calls if c[0] == "step"]
    calls = [_replace_module(c) for c in calls if c[0] != "step"]
    calls = [c for c in calls if "torchrun" in c]
    said = one_line(str(found.get("said")).strip(), 200)
    said = f" bash says: {said}" if said else ""
    if not calls:
        return (
            "neither `srun torchrun ...` nor `srun bash -c 'torchrun ...'` was called when bash ran "
            f"the script.{said}"
        )
    if any(words[0] == "torchrun" for words in calls):
        return "without srun, torchrun runs on the first node only; use `srun torchrun ...`"
    once = [c for c in calls if c[0] in {"srun", "srun0"}]
    if len(once) > 1:
        return f"srun torchrun was called {len(once)} times, but one call starts it on every node"
    problems = (_find_wrong_word(words, said, spec, job_id, head) for words in calls)
    return next(filter(None, problems), "") or _find_wrong_cpus(steps, str(found["text"]), spec)


def _find_wrong_cpus(steps: Sequence[Sequence[str]], text: str, spec: Mapping[str, Any]) -> str:
    """Return the problem with the CPUs of the processes started by srun.

    steps: for each call of srun, the value of a variable and srun's options.
    """
    if "cpus-per-gpu" in sbatch_options(text)[0]:  # srun inherits this option from the job
        return ""
    wanted = str(CPUS_PER_GPU * spec["gpus_per_node"])
    for _, variable, *words in steps:
        told = _by_long_name(words)
        if told.get("cpus-per-gpu") == str(CPUS_PER_GPU):
            continue
        cpus = told.get("cpus-per-task", variable.removeprefix("="))
        if not cpus:
            return (
                "srun gets no --cpus-per-task, and since Slurm 22.05, srun does not inherit it from "
                "sbatch: repeat it for srun, or export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK"
            )
        if cpus != wanted:
            return f"srun gets {cpus} CPUs for its task, but the task asks for {wanted}"
    return ""


def _find_wrong_word(
    words: Sequence[str], subject: str, spec: Mapping[str, Any], job_id: int, head: str
) -> str:
    told = words[words.index("torchrun") + 1 :]
    asked = _parse_words(told)
    if "problem" in asked:
        return f"torchrun cannot read its arguments: {asked['problem']}.{subject}"
    for option in ("nnodes", "nproc-per-node"):
        alike = (f"--{option}", f"--{option.replace('-', '_')}")
        if (
            not any(word.split("=")[0] in alike for word in told)
            and spec[_COUNT_OPTIONS[option]] > 1
        ):
            return f"torchrun gets no --{option}, so it assumes 1"
    return _find_wrong_torchrun_option(asked, spec, job_id, head, words[0])


def _replace_module(words: list[str]) -> list[str]:
    """Replace `python -m torch.distributed.run` with torchrun, which does the same."""
    for at in range(len(words) - 2):
        if words[at + 1 : at + 3] == ["-m", "torch.distributed.run"]:
            started_by = [word for word in words[:1] if word.startswith("srun")]
            return [*started_by, "torchrun", *words[at + 3 :]]
    return words


def _parse_words(words: Sequence[str]) -> dict[str, Any]:
    from torch.distributed.run import get_args_parser

    said = StringIO()
    try:
        with redirect_stderr(said), redirect_stdout(said):
            return vars(get_args_parser().parse_args(words))
    except SystemExit:
        last = (said.getvalue().strip().splitlines() or ["?"])[-1]
        return {"problem": one_line(last.partition("error: ")[2] or last, 200)}


def _find_wrong_torchrun_option(
    options: Mapping[str, Any], spec: Mapping[str, Any], job_id: int, head: str, step: str
) -> str:
    """Return the problem with torchrun's options. step: srun, or srun and the node on which bash runs."""
    nodes, gpus = str(spec["nodes"]), str(spec["gpus_per_node"])
    if str(options["nnodes"]) not in {nodes, f"{nodes}:{nodes}"}:
        return f"torchrun gets --nnodes={options['nnodes']}, but there are {nodes} nodes"
    # "gpu" stands for the number of GPUs
    if str(options["nproc_per_node"]) not in {gpus, "gpu", "auto"}:
        return (
            f"torchrun gets --nproc-per-node={options['nproc_per_node']}, but a node has "
            f"{plural(int(gpus), 'GPU')}"
        )
    if options["rdzv_backend"] != "c10d":
        if step != "srun":
            return "the rendezvous does not use c10d: the task asks for --rdzv-backend=c10d"
        return (
            "the rendezvous does not use c10d (--rdzv-backend=c10d): static rendezvous needs a different "
            "--node-rank on each node, but this script is read by one bash, on the first node"
        )
    if str(options["rdzv_id"]) != str(job_id):
        got = options["rdzv_id"]
        return f"--rdzv-id is {got!r}; use $SLURM_JOB_ID, here {job_id}, which differs between jobs"
    host, _, port = str(options["rdzv_endpoint"]).partition(":")
    if host != head:
        return _find_wrong_host(host, head, step)
    if port and not port.isdigit():
        return f"the port of --rdzv-endpoint is {port!r}, not a number"
    if options["training_script"] != spec["script"]:
        return f"torchrun runs {one_line(str(options['training_script']), 60)!r} instead of {spec['script']}"
    return ""


def _find_wrong_host(host: str, head: str, step: str) -> str:
    where = "" if step in {"srun", "srun0"} else " on the last node"
    words = f"the host of --rdzv-endpoint{where} is {host!r}, but all agents must connect to {head}"
    if host in {"localhost", "127.0.0.1", "0.0.0.0"}:
        return f"{words}: on every other node, {host} is that node itself"
    if not host and step != "srun":
        return f"{words}: the bash that srun starts knows a variable only after `export`"
    if host.startswith("$"):
        return f"{words}: between single quotes bash leaves `$` alone"
    if "[" in host:
        return f"{words}: Slurm's list is abbreviated, and `scontrol show hostnames` spells it out"
    return f"{words}, the first host of the job's list (`head -n 1`)"
