"""Cases of notebook 14 that ask about environments, commands and errors, and what to say of them."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

from helpers.exercises.model import Case
from helpers.ranks.failures import RankFailed
from helpers.ranks.run import Run
from helpers.views.plain import one_line

_ALONE = {
    "rank": 0,
    "local_rank": 0,
    "node": 0,
    "world_size": 1,
    "local_world_size": 1,
    "nodes": 1,
    "restart": 0,
}
_VARIABLES = {
    "rank": "RANK",
    "local_rank": "LOCAL_RANK",
    "node": "GROUP_RANK",
    "world_size": "WORLD_SIZE",
    "local_world_size": "LOCAL_WORLD_SIZE",
    "nodes": "GROUP_WORLD_SIZE",
    "restart": "TORCHELASTIC_RESTART_COUNT",
}
_TEXTS = ("shard 17 is empty", "loss is nan at step 40", "no such tokenizer: bpe-7")


def env_cases(rng: random.Random) -> list[Case]:
    """Draw workers on unequal nodes, after restarts; one without torchrun; then real ones."""
    return [
        _env_case("2 nodes with 3 workers each", [3, 3], rng.randrange(1, 4)),
        _env_case("nodes with 1, 4 and 2 workers", [1, 4, 2], 0),
        Case(
            "plain python, no torchrun",
            1,
            inputs=[([{}],)],
            expected=[_ALONE],
        ),
        Case(
            "real torchrun, 2 workers",
            2,
            inputs=[(None,)] * 2,
            expected=[_place(rank, [2], 0) for rank in range(2)],
            timeout_s=45.0,
            last=True,
        ),
    ]


def _env_case(label: str, sizes: list[int], restart: int) -> Case:
    places = [_place(rank, sizes, restart) for rank in range(sum(sizes))]
    envs = [{_VARIABLES[key]: str(value) for key, value in place.items()} for place in places]
    return Case(label, sum(sizes), inputs=[(envs,)] * sum(sizes), expected=places)


def _place(rank: int, sizes: list[int], restart: int) -> dict[str, int]:
    node = next(n for n in range(len(sizes)) if rank < sum(sizes[: n + 1]))
    return {
        "rank": rank,
        "local_rank": rank - sum(sizes[:node]),
        "node": node,
        "world_size": sum(sizes),
        "local_world_size": sizes[node],
        "nodes": len(sizes),
        "restart": restart,
    }


def look_at_env(case: Case, run: Run) -> str:
    """Say which entry is read from the wrong place."""
    if isinstance(run.failure, RankFailed):
        if run.failure.error.kind == "KeyError" and case.expected == [_ALONE]:
            return (
                "Started by plain `python`, these variables are not there: `os.environ.get` takes a "
                "value for that."
            )
        return ""
    for rank, value in enumerate(run.values):
        if not isinstance(value, dict) or case.expected is None:
            return ""
        for key, wanted in case.expected[rank].items():
            got = value.get(key)
            if isinstance(got, str):
                return f"{key!r} is the string {got!r}: environment variables are text, make it an int."
            if got != wanted and key in value:
                if case.expected == [_ALONE]:
                    return f"Started by plain `python`, {key!r} is {wanted}: this process is alone."
                others = [
                    k for k, v in case.expected[rank].items() if v == got and got not in {0, 1}
                ]
                hint = f" (that is the {others[0]!r} here)" if others else ""
                return (
                    f"Worker {rank}: {key!r} must come from {_VARIABLES[key]}; got {got!r}{hint}."
                )
    return ""


def node_cases(rng: random.Random) -> list[Case]:
    """Draw two machines to read commands for; then start two real agents."""
    cases: list[Case] = []
    for nproc in (rng.choice([3, 4]), rng.choice([1, 8])):
        address, port = (
            f"10.0.{rng.randrange(9)}.{rng.randrange(2, 99)}",
            rng.randrange(20000, 40000),
        )
        given = (nproc, address, port)
        cases.append(
            Case(
                f"the two commands, {nproc} workers on each node",
                1,
                inputs=[given],
                judge=partial(_command_problem, *given),
            )
        )
    nproc = 2
    expected = [
        {"RANK": r, "LOCAL_RANK": r % nproc, "GROUP_RANK": r // nproc, "sum of ranks": 6}
        for r in range(2 * nproc)
    ]
    return [
        *cases,
        Case(
            "two real agents, 2 workers each",
            2 * nproc,
            inputs=[(nproc, "127.0.0.1", 0)] * (2 * nproc),
            expected=expected,
            timeout_s=45.0,
            last=True,
        ),
    ]


def _command_problem(nproc: int, address: str, port: int, run: Run) -> str:
    value = run.values[0]
    read = value.get("read") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(read, list) or len(read) != 2:
        got = value.get("commands") if isinstance(value, dict) else None
        return f"wanted: a list of two commands, each a list of strings; got {one_line(repr(got), 120)}"
    for node, found in enumerate(read):
        if wrong := _word_problem(value.get("commands"), node):
            return f"in the command of node {node} {wrong}"
        if not isinstance(found, dict) or "problem" in found:
            why = one_line(str(found.get("problem") if isinstance(found, dict) else found), 300)
            return f"the command of node {node} cannot be read by torchrun: {why}"
        if problem := _one_problem(found, node, nproc, address, port):
            return f"the command of node {node} {problem}"
    return ""


def _word_problem(commands: Any, node: int) -> str:
    """Say what is wrong with the words themselves, whatever they mean."""
    words = commands[node] if isinstance(commands, list) and len(commands) == 2 else []
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return "a word is no string: every word is a `str`, also the numbers."
    for word in words:
        if word.startswith("--") and " " in word:
            option, value = word.split(" ", 1)
            return f"{word!r} is one word; torchrun wants two: {option!r}, {value!r}, or an `=`."
    after = words[words.index("train.py") + 1 :] if "train.py" in words else []
    if any(word.startswith("--") for word in after):
        return "options stand after the script, so the script would get them: it comes last."
    return ""


def _one_problem(found: dict[str, Any], node: int, nproc: int, address: str, port: int) -> str:
    if found["standalone"] or found["rdzv_backend"] != "static" or found["rdzv_endpoint"]:
        return (
            "does not ask for static rendezvous: leave out `--standalone` and all that begins with "
            "`--rdzv`."
        )
    if str(found["nnodes"]) not in {"2", "2:2"}:
        return f"says --nnodes={found['nnodes']}; there are 2 nodes."
    if str(found["nproc_per_node"]) != str(nproc):
        return f"says --nproc-per-node={found['nproc_per_node']}; each node has {nproc} workers."
    if found["node_rank"] != node:
        return (
            f"says --node-rank={found['node_rank']} (0 if it is not given). Nodes are counted from 0, "
            "and the order of your list is theirs."
        )
    if found["master_addr"] != address:
        return (
            f"says --master-addr={found['master_addr']}; all agents must go to {address}, where node "
            "0 is."
        )
    if str(found["master_port"]) != str(port):
        return f"says --master-port={found['master_port']}; both must name {port}."
    if found["training_script"] != "train.py":
        return (
            f"runs {one_line(str(found['training_script']), 60)!r}, not the script that was given."
        )
    return ""


def error_cases(rng: random.Random) -> list[Case]:
    """Draw which worker fails, and with what; the last time under a real agent."""
    text, last = rng.sample(_TEXTS, 2)
    bad = rng.randrange(1, 3)
    return [
        _error_case(f"worker {bad} of 3 raises", 3, bad, text, False),
        _error_case("no worker raises", 2, -1, text, False),
        _error_case("worker 1 of 2 raises, real torchrun", 2, 1, last, True),
    ]


def _error_case(label: str, nproc: int, bad: int, text: str, real: bool) -> Case:
    expected = [
        {
            "exit code": int(rank == bad),
            "error file": f"ValueError: {text}" if rank == bad else "",
            "calls of main": 1,
        }
        for rank in range(nproc)
    ]
    return Case(
        label,
        nproc,
        inputs=[(nproc, bad, text, real)] * nproc,
        expected=expected,
        given="main" + (f", which raises on worker {bad}" if bad >= 0 else ""),
        timeout_s=45.0 if real else 10.0,
        last=real,
    )


def look_at_errors(case: Case, run: Run) -> str:
    """Say what became of the exception."""
    if isinstance(run.failure, RankFailed):
        if run.failure.error.kind in {"SystemExit", "RuntimeError", "Exception"}:
            return "Let main's own exception go on: `record` writes it down and raises it again."
        return ""
    nproc, bad, text, _ = case.inputs[0]
    for rank, value in enumerate(run.values):
        if not isinstance(value, dict):
            return ""
        if value.get("calls of main") != 1:
            return f"Worker {rank} calls main {value.get('calls of main')} times; once is wanted."
        if rank == bad and not value.get("exit code"):
            return (
                "main raised, but the worker left with exit code 0: its agent takes that for success. "
                "Let the exception go on."
            )
        if rank == bad and not value.get("error file"):
            return (
                "The worker failed, but its error file is empty. `record(main)` gives a function that "
                "calls main and writes down what it raises: that function must make the call."
            )
    return ""
