"""Exercises of notebook 16: MPI, RPC, Slurm, and which of them to take."""

from __future__ import annotations

from helpers.exercises.model import Exercise, Kind
from helpers.exercises.mpi_cases import look_at_mpi, mpi_cases
from helpers.exercises.rpc_cases import look_at_rpc, rpc_cases
from helpers.exercises.slurm_scripts import slurm_cases
from helpers.exercises.tool_choices import look_at_choice, tool_cases

NOTEBOOK = "16_other_roads"

EXERCISES = (
    Exercise(
        "mpi_all_reduce",
        "16.1",
        "All-reduce in MPI's words",
        NOTEBOOK,
        Kind.SCRIPT,
        mpi_cases,
        (
            "`x.numpy()` is the tensor's own memory under another name. What does `Allreduce` do when "
            "its first argument is `MPI.IN_PLACE`?",
            "Reduce `x.contiguous()` in place: where x lies in one piece that is x itself, else it is "
            "a copy, which `x.copy_(...)` brings back. A mean is a sum, divided.",
            "whole = x.contiguous(); world.Allreduce(MPI.IN_PLACE, whole.numpy(), op=MPI.MAX if op == "
            "'max' else MPI.SUM); if op == 'mean': whole /= world.Get_size(); x.copy_(whole)",
        ),
        minutes=10,
        difficulty=2,
        programme="helpers.exercises.mpi_programmes:on_mpi_ranks",
        look=look_at_mpi,
    ),
    Exercise(
        "rpc_parameter_server",
        "16.2",
        "A server that asks",
        NOTEBOOK,
        Kind.MODULE,
        rpc_cases,
        (
            "Your function runs on the server alone. In each step it asks every trainer one question: "
            "what is your gradient at these weights?",
            "`rpc.rpc_async(trainer, gradient, args=(w,))` starts a call and gives a future. Start all "
            "of a step, and only then `wait()` for each.",
            "futures = [rpc.rpc_async(t, gradient, args=(w,)) for t in trainers]; mean = "
            "sum(f.wait() for f in futures) / len(trainers); w = w - lr * mean. All this `steps` times.",
        ),
        minutes=12,
        difficulty=3,
        programme="helpers.exercises.rpc_programmes:serve",
        look=look_at_rpc,
        own_network=True,
    ),
    Exercise(
        "slurm_script",
        "16.3",
        "A batch script",
        NOTEBOOK,
        Kind.LOCAL,
        slurm_cases,
        (
            "Begin with the script above, as an f-string. Which of its numbers and names come from the "
            "arguments, and which does bash fill in on the cluster?",
            "--job-name, --nodes, --ntasks-per-node=1, --gpus-per-node, --time={minutes}; then the "
            "line with scontrol, then srun torchrun with --nnodes, --nproc-per-node and three --rdzv.",
            'return f"""#!/bin/bash\\n#SBATCH --job-name={name}\\n ... srun torchrun --nnodes={nodes} '
            '--nproc-per-node={gpus_per_node} --rdzv-id=$SLURM_JOB_ID ... {script}\\n""" : the `$` '
            "words stay as they are. No empty line before #!.",
        ),
        minutes=10,
        difficulty=2,
        programme="helpers.exercises.slurm_bash:run_script",
    ),
    Exercise(
        "choose_a_tool",
        "16.4",
        "Which road?",
        NOTEBOOK,
        Kind.JUDGEMENT,
        tool_cases,
        (
            "Two questions, and they are independent but for MPI: how do the ranks talk, how are they "
            "started? Answer the first one first.",
            "Go through the table from top to bottom, with `if` and `return`: MPI decides about both. "
            "After it comes Slurm, then `mp.spawn` with its three conditions; torchrun is the rest.",
            "if job['speaks_mpi']: return ('srun' if job['slurm'] else 'mpiexec', 'mpi'); talk = "
            "'process group' if job['all_alike'] else 'rpc'; then the three ways to start.",
        ),
        minutes=8,
        difficulty=2,
        look=look_at_choice,
    ),
)
