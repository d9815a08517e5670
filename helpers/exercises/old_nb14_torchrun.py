"""Exercises of notebook 14: jobs under torchrun, their failures, their checkpoints."""

from __future__ import annotations

from helpers.exercises.model import Exercise, Kind
from helpers.exercises.reshard_cases import look_at_resharded, reshard_cases
from helpers.exercises.resume_cases import look_at_resumed, resume_cases
from helpers.exercises.torchrun_cases import (
    env_cases,
    error_cases,
    look_at_env,
    look_at_errors,
    node_cases,
)

NOTEBOOK = "14_torchrun"
_AGENTS = "helpers.exercises.torchrun_programmes"
_RESUME = "helpers.exercises.resume_programmes"

EXERCISES = (
    Exercise(
        "read_torchrun_env",
        "14.1",
        "Who am I?",
        NOTEBOOK,
        Kind.SCRIPT,
        env_cases,
        (
            "Each entry of the dict is one variable, as a whole number. What does `os.environ.get` "
            "give for a variable that is not there?",
            "`int(os.environ.get(name, default))`. A process that torchrun did not start is rank 0 of "
            "a world of 1, on node 0 of 1.",
            "number = lambda name, alone: int(os.environ.get(name, alone)). Then {'rank': "
            "number('RANK', 0), 'world_size': number('WORLD_SIZE', 1), ...}",
        ),
        minutes=6,
        difficulty=1,
        programme=f"{_AGENTS}:read_env",
        look=look_at_env,
    ),
    Exercise(
        "launch_two_nodes",
        "14.2",
        "Two nodes",
        NOTEBOOK,
        Kind.SCRIPT,
        node_cases,
        (
            "Look at the two commands above: which word differs between them?",
            "Both commands: torchrun, --nnodes, --nproc-per-node, --node-rank, --master-addr, "
            "--master-port, then the script. Numbers must become strings.",
            "[['torchrun', '--nnodes=2', f'--nproc-per-node={nproc_per_node}', "
            "f'--node-rank={node}', ...] for node in range(2)]",
        ),
        minutes=8,
        difficulty=2,
        programme=f"{_AGENTS}:two_nodes",
    ),
    Exercise(
        "record_errors",
        "14.3",
        "Let the report name the cause",
        NOTEBOOK,
        Kind.SCRIPT,
        error_cases,
        (
            "`record` is a decorator, so it takes a function and gives a function. Which of the two "
            "has to be called?",
            "`from torch.distributed.elastic.multiprocessing.errors import record`. Call what "
            "`record(main)` gives, and catch nothing.",
            "record(main)()",
        ),
        minutes=5,
        difficulty=1,
        programme=f"{_AGENTS}:failing",
        look=look_at_errors,
    ),
    Exercise(
        "checkpoint_and_resume",
        "14.4",
        "Killed and resumed",
        NOTEBOOK,
        Kind.SCRIPT,
        resume_cases,
        (
            "Write down everything that the next step depends on. The model's weights are one of five "
            "things.",
            "Model, optimizer, random state of each rank, number of steps done, losses so far. Before "
            "the loop: if the file is there, load it and put all five back. After every `every` steps: "
            "gather the random states, and rank 0 saves, under another name first.",
            "states = [None] * dist.get_world_size(); dist.all_gather_object(states, "
            "torch.get_rng_state()). The loop: for n in range(done, epochs * steps): "
            "losses.append(train_step(*divmod(n, steps))); then if (n + 1) % every == 0: save.",
        ),
        minutes=18,
        difficulty=4,
        programme=f"{_RESUME}:resume",
        look=look_at_resumed,
    ),
    Exercise(
        "reshard_checkpoint",
        "14.5",
        "Four ranks save, two load",
        NOTEBOOK,
        Kind.MODULE,
        reshard_cases,
        (
            "`dcp.load` fills tensors that are there already. Which tensors must this rank have?",
            "Make a DTensor of zeros for each name, with the whole shape, on `mesh`, placed "
            "`[Shard(0)]`; give the dict to `dcp.load`.",
            "state = {name: zeros(shape, device_mesh=mesh, placements=[Shard(0)]) for name, shape in "
            "shapes.items()}; dcp.load(state, checkpoint_id=folder); return state. `zeros` is the one "
            "of torch.distributed.tensor.",
        ),
        minutes=10,
        difficulty=3,
        programme=f"{_RESUME}:reshard",
        look=look_at_resharded,
        own_network=True,
    ),
)
