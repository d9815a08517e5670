"""Run answers of 22.3 in a bash process that imitates Slurm.

`srun`, `scontrol` and similar commands are bash functions, and the variables are the same as under Slurm.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

_BASH_S = 5.0
_FUNCTIONS = r"""
note() { printf '%s\0' "$@" $'\n' >> "$CALLS"; }
torchrun() { note ${ON_NODE:+srun$ON_NODE} torchrun "$@"; }
python() {
    case " $* " in
    *" -m torch.distributed.run "*) note ${ON_NODE:+srun$ON_NODE} python "$@" ;;
    *) command python3 "$@" ;;
    esac
}
python3() { python "$@"; }
srun() {
    local at node
    for ((at = 1; at <= $#; at++)); do
        case "${!at}" in
        torchrun | python* | bash | sh | */bash | */sh) break ;;
        esac
    done
    note step "=$(printenv SRUN_CPUS_PER_TASK)" "${@:1:at-1}"
    case "${!at}" in
        bash | sh | */bash | */sh)
            for node in 0 $(($SLURM_NNODES - 1)); do
                ON_NODE=$node SLURM_NODEID=$node SLURM_PROCID=$node bash "${@:at+1}"
            done
            return ;;
    esac
    note srun "$@"
}
exec() { (($# == 0)) || { "$@"; exit; }; }
scontrol() { seq -f 'gpu%g' "$FIRST" "$(($FIRST + $SLURM_NNODES - 1))"; }
hostname() { echo "gpu$(($FIRST + $SLURM_NODEID))"; }
module() { :; }
conda() { :; }
export -f note torchrun python python3 exec scontrol hostname module conda
"""
"""Definitions of bash functions, which write down the words of each call.

`srun bash -c` starts bash on the first and on the last node, because its words may differ between nodes. The
first words of each entry are `srun` and the node.
"""


def run_batch_script(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    spec: Mapping[str, Any],
    job_id: int,
    first: int,
) -> dict[str, Any]:
    """Get the script and run it in bash; return its text, the words passed to `srun`, and bash's messages."""
    text = answer(*spec.values())
    if not isinstance(text, str):
        return {"text": None, "got": repr(text)[:200]}
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    calls, script = folder / "calls", folder / "job.sh"
    calls.touch()
    script.write_text(text, encoding="utf-8")
    nodes = spec["nodes"]
    env = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "CALLS": str(calls),
        "FIRST": str(first),
        "SLURM_JOB_ID": str(job_id),
        "SLURM_NNODES": str(nodes),
        "SLURM_JOB_NUM_NODES": str(nodes),
        "SLURM_JOB_NODELIST": f"gpu[{first}-{first + nodes - 1}]",
        "SLURM_GPUS_PER_NODE": str(spec["gpus_per_node"]),
        "SLURM_GPUS_ON_NODE": str(spec["gpus_per_node"]),
        "SLURM_NODEID": "0",
        "SLURM_PROCID": "0",
    }
    if asked := re.search(r"^#SBATCH.*\s(?:--cpus-per-task[= ]|-c ?)(\d+)", text, re.MULTILINE):
        env["SLURM_CPUS_PER_TASK"] = asked[1]
    env["SLURM_NODELIST"] = env["SLURM_JOB_NODELIST"]
    said = "not done after 5 s"
    with suppress(subprocess.TimeoutExpired):
        said = subprocess.run(
            ["bash", "-c", f'{_FUNCTIONS}\nsource "$0"', str(script)],
            env=env,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_BASH_S,
        ).stderr
    words = calls.read_bytes().decode(errors="replace").split("\0")
    found = "\0".join(words).split("\n\0")
    return {
        "text": text[:20_000],
        "calls": [[w for w in call.split("\0") if w] for call in found if call],
        "said": said.replace(str(script), "job.sh")[:2000],
    }
