"""Exercises of notebook 15: a mesh, training on it, experts, a script with bugs, a plan."""

from __future__ import annotations

from helpers.checks.rules import Holds, OnlyCalls
from helpers.checks.rules_phases import AwaitedByHand, CallsIn
from helpers.exercises.expert_cases import expert_cases, most_exchanged
from helpers.exercises.look_at_capstone import (
    look_at_experts,
    look_at_layout,
    look_at_script,
    look_at_training_2d,
)
from helpers.exercises.mesh_cases import (
    each_in_its_dimension,
    layout_cases,
    summed_in_each_group,
    training_cases,
)
from helpers.exercises.model import Exercise, Kind
from helpers.exercises.plan_cases import PLAN_A_RUN
from helpers.exercises.rules_gradients import TotalHandedIn
from helpers.exercises.script_cases import reduced_bytes, script_cases

NOTEBOOK = "15_capstone"
_PROGRAMMES = "helpers.exercises.capstone_programmes"

EXERCISES = (
    Exercise(
        "mesh_layout",
        "15.1",
        "Who stands where",
        NOTEBOOK,
        Kind.MODULE,
        layout_cases,
        (
            "Write down the ranks 0 to 7 and their coordinates for the order tp-dp-pp. Which coordinate "
            "changes with every rank, which after four?",
            "names = order.split('-')[::-1] gives the dimensions from the outermost to the innermost, as "
            "init_device_mesh wants them. mesh.get_local_rank(name) is the coordinate, mesh.get_group(name) "
            "the group, dist.get_process_group_ranks(group) its ranks.",
            "mesh = init_device_mesh('cpu', tuple(sizes[n] for n in names), mesh_dim_names=tuple(names)); "
            "then for each name: group = mesh.get_group(name); total = x.clone(); "
            "dist.all_reduce(total, group=group); hosts = len({r // per_host for r in ranks}).",
        ),
        minutes=10,
        difficulty=2,
        rules=(
            OnlyCalls(("all_reduce",)),
            Holds(summed_in_each_group, "one all_reduce in each group of more than one rank"),
        ),
        programme=f"{_PROGRAMMES}:lay_out",
        look=look_at_layout,
    ),
    Exercise(
        "train_2d",
        "15.2",
        "Data and tensor parallel",
        NOTEBOOK,
        Kind.MODULE,
        training_cases,
        (
            "Which ranks must see the same samples? Which ranks hold the same part of a weight? Each of "
            "these questions is answered by one of the two groups.",
            "Broadcast both weights from rank 0 to all. Cut them by a Block on mesh['tp']. In each step: "
            "the batch's share of your dp coordinate, forward, backward, all_reduce of each gradient with "
            "AVG in the dp group, optimizer step, clones of the two parts into the list.",
            "mesh = init_device_mesh('cpu', (world_size // tp, tp), mesh_dim_names=('dp', 'tp')); dp = "
            "mesh['dp']; block = Block(up, down, mesh['tp']); own = slice of step * batch_size + "
            "dp.get_local_rank() * share, share long; dist.all_reduce(p.grad, op=dist.ReduceOp.AVG, "
            "group=dp.get_group()).",
        ),
        minutes=15,
        difficulty=3,
        rules=(Holds(each_in_its_dimension, "each group carries only what belongs into it"),),
        programme=f"{_PROGRAMMES}:train_on_a_mesh",
        look=look_at_training_2d,
    ),
    Exercise(
        "expert_parallel",
        "15.3",
        "Tokens to their experts",
        NOTEBOOK,
        Kind.MODULE,
        expert_cases,
        (
            "all_to_all_single sends consecutive rows to consecutive ranks. In which order must the tokens "
            "be, and what must the receiver know beforehand?",
            "gate, choice = (x @ router.T).softmax(1).max(1); order = choice.argsort(); counts by "
            "bincount(minlength=world_size); exchange the counts; Exchange.apply(x[order], sends, receives); "
            "the expert; Exchange.apply back with the two lists swapped; undo the order; times gate.",
            "dist.all_to_all_single(receives, sends) on int64 tensors, then .tolist() on both. At the end: y "
            "= torch.empty_like(back); y[order] = back; return gate[:, None] * y.",
        ),
        minutes=15,
        difficulty=4,
        further=True,
        rules=(
            OnlyCalls(("all_to_all",)),
            CallsIn(
                "forward",
                3,
                most_bytes=most_exchanged,
                missing="Counts, tokens out, tokens back.",
                why="Counts, tokens out, tokens back: three exchanges.",
                why_large="A token travels to its own expert only, without padding and without company: the "
                "gate can stay at home.",
            ),
            CallsIn(
                "backward",
                2,
                most_bytes=most_exchanged,
                missing="Gradients take both journeys of the tokens in reverse.",
                why="Gradients take both journeys of the tokens in reverse.",
                why_large="A gradient travels where its token was, and nowhere else.",
            ),
            AwaitedByHand(),
        ),
        programme=f"{_PROGRAMMES}:route_tokens",
        look=look_at_experts,
    ),
    Exercise(
        "find_the_bugs",
        "15.4",
        "Eight bugs",
        NOTEBOOK,
        Kind.MODULE,
        script_cases,
        (
            "Let the check lead you: it names one effect at a time. Ask for each line of the script: on "
            "which ranks does it run, how often, and on whose data?",
            "One collective stands under `if rank == 0`. Of the three lines around backward: which "
            "microbatch is the last, how large is its loss, when is the gradient complete? And what does "
            "an epoch need at its beginning?",
            "last = (i + 1) % accumulate == 0; loss / accumulate; clip once, before the step; at the top of "
            "an epoch sampler.set_epoch(epoch) and model.train(); test on Subset(test, range(rank, "
            "len(test), world_size)); all_reduce and append on every rank; save on rank 0 only.",
        ),
        minutes=20,
        difficulty=4,
        points=20,
        rules=(
            TotalHandedIn(
                "gradients are averaged once in each step",
                reduced_bytes,
                10_000,
                why=lambda nbytes, case: (
                    "Gradients travel once in each step, with its last microbatch. DDP decides in the "
                    "forward whether they will: in the others `ddp(x)` must stand inside no_sync() as "
                    "well, not backward alone (notebook 09)."
                ),
                counts=lambda event: event.op == "all_reduce",
            ),
        ),
        programme=f"{_PROGRAMMES}:run_script",
        look=look_at_script,
    ),
    PLAN_A_RUN,
)
