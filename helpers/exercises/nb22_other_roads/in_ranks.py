"""What runs around the answers of notebook 22: MPI ranks, an RPC server and its trainers, a bash for Slurm's.

`on_mpi_ranks` is called in the one rank that starts mpiexec, `reduce_all` on each MPI rank. Of RPC, each
trainer leaves a mark in a folder that the world shares whenever its gradient is asked for, with the weights
that it was given. There is no Slurm here: `srun`, `scontrol` and the like are functions of a bash, and the
variables are those that Slurm would set.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
import torch.distributed.rpc as rpc
import torch.distributed.rpc.api as api

from helpers.checks.script_mpi import under_mpiexec
from helpers.checks.scripts import Source, compose
from helpers.ranks.inside import launch_folder

MPIEXEC_S = 25.0
"""How long the ranks may take: 2 s are usual, but thirty learners may share the machine."""
_ANSWER_S = 5.0
"""How long the answer may take once all ranks are there. It needs milliseconds; ranks that hang spin."""
_BUFFERS = (
    "Allreduce",
    "Iallreduce",
    "Reduce",
    "Ireduce",
    "Bcast",
    "Ibcast",
    "Gather",
    "Allgather",
    "Scatter",
    "Alltoall",
    "Send",
    "Recv",
    "Isend",
    "Irecv",
    "Scan",
)
_PICKLES = (
    "allreduce",
    "reduce",
    "bcast",
    "gather",
    "allgather",
    "scatter",
    "alltoall",
    "send",
    "recv",
    "isend",
    "irecv",
    "scan",
)


def on_mpi_ranks(
    answer: Source,
    rank: int,
    world_size: int,
    n: int,
    given: Sequence[Sequence[torch.Tensor]],
    ops: Sequence[str],
    strides: Sequence[int],
    colours: Sequence[Sequence[int]],
) -> dict[str, Any]:
    """Run the answer on `n` MPI ranks, on every row of `given` (a tensor for each rank).

    strides: each row's tensors are every so many elements of longer ones. colours: ranks of one colour
    reduce a row among themselves.
    """
    inputs = ([list(row) for row in given], list(ops), list(strides), [list(c) for c in colours])
    script = compose(answer, reduce_all, inputs)
    found = under_mpiexec(script, n, timeout_s=MPIEXEC_S)
    for place in script.parent.glob("*.inside"):
        found["values"][int(place.stem)] = {"waits_in": place.read_text()}
        found |= {"late": True, "seconds": _ANSWER_S}
    return found


def reduce_all(
    answer: Callable[..., Any],
    given: Sequence[Sequence[torch.Tensor]],
    ops: Sequence[str],
    strides: Sequence[int],
    colours: Sequence[Sequence[int]],
) -> list[dict[str, Any]]:
    """Reduce each tensor in place by the answer; say what became of it and which calls were made."""
    from mpi4py import MPI

    me, inside = MPI.COMM_WORLD.Get_rank(), [""]
    found = []
    MPI.COMM_WORLD.Barrier()  # the time runs from when all are there
    watch = threading.Timer(_ANSWER_S, _give_up, [Path(f"{me}.inside").absolute(), inside])
    watch.daemon = True
    watch.start()
    for row, op, stride, colour in zip(given, ops, strides, colours, strict=True):
        world = counting(MPI.COMM_WORLD.Split(colour[me], me), inside)
        mine = row[me]
        # a view whose elements are not next to each other; those between belong to somebody else
        longer = torch.stack([mine] * stride, -1).flatten(-2)
        x, between = longer[..., ::stride], [longer[..., k::stride] for k in range(1, stride)]
        try:
            returned = answer(world, x, op)
        except Exception as error:
            raise error.with_traceback(_python_only(error.__traceback__)) from None
        kept = all(torch.equal(part, mine) for part in between)
        told = {"x": x.clone(), "calls": world.calls, "returned": returned is not None}
        found.append({**told, "kept": kept})
    watch.cancel()
    return found


def _give_up(place: Path, inside: list[str]) -> None:
    """Write down in which call this rank is, give the others time to do so too, and end the job."""
    place.write_text(inside[-1])
    time.sleep(0.5)
    os._exit(1)


def _python_only(trace: TracebackType | None) -> TracebackType | None:
    """Leave mpi4py's own lines out, eight of which would hide the learner's."""
    while trace is not None and trace.tb_frame.f_code.co_filename.endswith((".pxi", ".pyx")):
        trace = trace.tb_next
    if trace is not None:
        trace.tb_next = _python_only(trace.tb_next)
    return trace


def counting(world: Any, inside: list[str]) -> Any:
    """Give a communicator like `world` that keeps the names of the calls made on it, in `calls`.

    inside: ends with the name of the call that has begun and not ended yet, if there is one.
    """

    def counted(name: str) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            self.calls.append(name)
            inside.append(name)
            try:
                return getattr(super(kind, self), name)(*args, **kwargs)
            finally:
                inside.pop()

        return call

    kind: Any = type(
        "Intracomm", (type(world),), {name: counted(name) for name in (*_BUFFERS, *_PICKLES)}
    )
    made = kind(world)
    made.calls = []
    return made


# --- RPC -------------------------------------------------------------------------------------------

_APART_S = 0.02
"""How much later than the one before each trainer answers: time enough to use the first answer."""
_PATIENCE_S = 2.5
"""How long a trainer waits for the others to be asked as well, before it says that it was alone."""


@dataclass(frozen=True)
class Gradient:
    """The gradient of this trainer's own loss: half the squared distance to its own target.

    Travels by pickle; what it does depends on the trainer that it is called on.
    """

    targets: torch.Tensor
    folder: str

    def __call__(self, weights: torch.Tensor) -> torch.Tensor:
        me, folder = rpc.get_worker_info().id, Path(self.folder)
        asked = len(list(folder.glob(f"{me}-*")))
        (folder / f"{me}-{asked}").write_text(repr(weights.tolist()))
        others = [folder / f"{r}-{asked}" for r in range(1, len(self.targets))]
        deadline = time.monotonic() + _PATIENCE_S
        while me and not all(other.exists() for other in others):
            if time.monotonic() > deadline or (folder / "alone").exists():
                (folder / "alone").touch()
                break
            time.sleep(0.001)
        time.sleep(_APART_S * max(0, me - 1))
        return weights - self.targets[me]


def serve(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    weights: torch.Tensor,
    targets: torch.Tensor,
    steps: int,
    lr: float,
) -> dict[str, Any] | None:
    """Call the answer on rank 0, the server, while the trainers wait for its calls."""
    folder = launch_folder() / "rpc"
    folder.mkdir(exist_ok=True)
    warnings.filterwarnings("ignore", message="You are using a Backend")  # RPC's own inner calls
    names = ["server", *(f"trainer{r}" for r in range(1, world_size))]
    options = rpc.TensorPipeRpcBackendOptions(
        num_worker_threads=4, init_method=f"file://{folder}/store"
    )
    rpc.init_rpc(names[rank], rank=rank, world_size=world_size, rpc_backend_options=options)
    try:
        if rank:
            return None
        given = weights.clone()
        changed = _watch_what_is_sent()
        value = answer(names[1:], given, Gradient(targets, str(folder)), steps, lr)
        told = {**_told(folder, world_size), "changed": bool(changed)}
        return {"weights": value, "kept": given.equal(weights), **told}
    finally:
        rpc.shutdown()


def _watch_what_is_sent() -> list[torch.Tensor]:
    """Watch the tensors of each `rpc_async`; give a list of those that change before its answer comes.

    Every way to import `rpc_async` and `rpc_sync` ends in this one call of torch's.
    """
    changed: list[torch.Tensor] = []
    invoke: Any = vars(api)["_invoke_rpc_python_udf"]

    def watched(to: Any, pickled: bytes, tensors: list[torch.Tensor], *more: Any) -> Any:
        sent = [(tensor, tensor._version) for tensor in tensors]
        shown: torch.futures.Future[Any] = torch.futures.Future()

        # a future of its own, which has the answer only when the look is over: whoever waits for it
        # may change what was sent
        def pass_on(answered: torch.futures.Future[Any]) -> None:
            changed.extend(tensor for tensor, version in sent if tensor._version != version)
            try:
                shown.set_result(answered.value())
            except Exception as error:
                shown.set_exception(error)

        invoke(to, pickled, tensors, *more).add_done_callback(pass_on)
        return shown

    vars(api)["_invoke_rpc_python_udf"] = watched
    return changed


def _told(folder: Path, world_size: int) -> dict[str, Any]:
    asked: Sequence[int] = [len(list(folder.glob(f"{r}-*"))) for r in range(world_size)]
    steps = [{path.read_text() for path in folder.glob(f"*-{k}")} for k in range(max(asked))]
    return {
        "asked": list(asked),
        "alone": (folder / "alone").exists(),
        "unlike": any(len(weights) > 1 for weights in steps),
    }


# --- Slurm -----------------------------------------------------------------------------------------

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
"""`srun bash -c` starts a bash on the first and the last node, as its words may differ there. Each has
`srun` and its node for its first word."""


def run_batch_script(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    spec: Mapping[str, Any],
    job_id: int,
    first: int,
) -> dict[str, Any]:
    """Ask for the script and let bash run it; give its text, what `srun` was given, what bash said."""
    text = answer(*spec.values())
    if not isinstance(text, str):
        return {"text": None, "got": repr(text)[:200]}
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    calls, script = folder / "calls", folder / "job.sh"
    calls.touch()
    script.write_text(text)
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
