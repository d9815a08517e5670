"""18.1 Two nodes (8 min, ●●○○○)

- Look at the two commands above. Which word differs between them?
- Both commands contain torchrun, --nnodes, --nproc-per-node, --node-rank, --master-addr, --master-port, and
  then the script. You need to turn numbers into strings.
- [['torchrun', '--nnodes=2', f'--nproc-per-node={nproc_per_node}', f'--node-rank={node}', ...] for node in
  range(2)]
"""

from typing import Any

from helpers.checks.author import *
from helpers.exercises.nb18_torchrun.in_ranks.agents import run_two_nodes
from helpers.views.plain import one_line

NPROC = 2


def case(draw: Draw) -> Case:
    nproc, script = (
        draw.of(1, 2, 3, 4, 8),
        draw.of("train.py", "jobs/train.py", "/srv/run/main.py", "my jobs/train.py"),
    )
    address = draw.of(f"10.0.{draw.whole(0, 9)}.{draw.whole(2, 99)}", "node-0.cluster", "gpu17")
    port = draw.whole(20_000, 40_000)

    def problem(got: dict[str, Any], rank: int) -> str:
        read, commands = got["read"], got["commands"]
        if not isinstance(commands, list) or len(read) != 2:
            return (
                "expected a list of two commands, each a list of strings; got "
                f"{one_line(repr(commands), 120)}"
            )
        for node, (words, found) in enumerate(zip(commands, read, strict=True)):
            if wrong := find_wrong_word(words, script):
                return f"in the command of node {node}, {wrong}"
            if "problem" in found:
                return f"the command of node {node} cannot be read by torchrun: {found['problem']}"
            if wrong := find_wrong_option(found, node, nproc, address, port, script):
                return f"the command of node {node} {wrong}"
        return ""

    return Case(
        f"the two commands, {nproc} workers on each node",
        [(script, nproc, address, port)],
        right=problem,
        like={"commands": None, "read": None},
        shown=f"{script!r}, {nproc}, {address!r}, {port}",
    )


def find_wrong_word(words: Any, script: str) -> str:
    """Return the problem with the words of a command, without parsing them."""
    if isinstance(words, str):
        return "there is one string instead of a list of words, each a string."
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return "a word is not a string: every word must be a `str`, including the numbers."
    if " " in script and script not in words and script.split()[0] in words:
        return (
            f"the path {script!r} is split at its space: make it one word, without calling split()."
        )
    for word in words:
        if word.startswith("--") and " " in word:
            option, value = word.split(" ", 1)
            return (
                f"{word!r} is one word, but torchrun expects two, {option!r} and {value!r}, or an `=` "
                "between them."
            )
    after = words[words.index(script) + 1 :] if script in words else []
    if any(word.startswith("--") for word in after):
        return "options after the script would be passed to the script: put the script last."
    return (
        f"{one_line(str(after), 60)} comes after the script, but the script must come last."
        if after
        else ""
    )


def find_wrong_option(
    found: dict[str, Any], node: int, nproc: int, address: str, port: int, script: str
) -> str:
    """Return the first wrong option of a parsed command."""
    if found["standalone"] or found["rdzv_backend"] != "static" or found["rdzv_endpoint"]:
        return (
            "does not ask for static rendezvous: leave out `--standalone` and all options "
            "that begin with `--rdzv`."
        )
    wanted = {
        "nnodes": ("2", "there are 2 nodes"),
        "nproc_per_node": (str(nproc), f"each node has {nproc} workers"),
        "node_rank": (str(node), "nodes are counted from 0, in the order of your list"),
        "master_addr": (address, f"all agents must connect to {address}, the address of node 0"),
        "master_port": (str(port), f"both commands must name {port}"),
    }
    for name, (right, why) in wanted.items():
        # "2:2" means a minimum of 2 and a maximum of 2 nodes
        if str(found[name]) not in {right, f"{right}:{right}"}:
            return f"says --{name.replace('_', '-')}={found[name]}; {why}."
    if found["training_script"] != script:
        return f"runs {one_line(str(found['training_script']), 60)!r} instead of the given script."
    return ""


def draw_real_agents_case(draw: Draw) -> Case:
    total = sum(range(2 * NPROC))
    places = [
        {"RANK": r, "LOCAL_RANK": r % NPROC, "GROUP_RANK": r // NPROC, "sum of ranks": total}
        for r in range(2 * NPROC)
    ]
    given = ("", NPROC, "127.0.0.1", 0)
    return Case(
        f"two real agents, {NPROC} workers each",
        [given] * len(places),
        PerRank(places),
        seconds=45.0,
    )


EXERCISE = Exercise(
    case,
    kind=Kind.SCRIPT,
    driver=run_two_nodes,
    reported=("commands", "read"),
    sizes=(1,),
    last=draw_real_agents_case,
)
