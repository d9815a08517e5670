"""Where to look first in a wrong answer of notebook 15: clues, exercise by exercise."""

from __future__ import annotations

import re

from helpers.exercises.model import Case
from helpers.exercises.tp_parts import LookFor
from helpers.ranks.failures import Deadlock, RankDied, RankFailed
from helpers.ranks.run import Run


class LookForOnAll(LookFor):
    """As LookFor, but the first clue that any rank gives counts, not the first rank's."""

    def __call__(self, case: Case, run: Run) -> str:
        if run.failure is None and case.expected is not None:
            problems = [str(w(value)) for w, value in zip(case.expected, run.values, strict=True)]
            missing = any("came back" in problem for problem in problems)
            for pattern, advice in () if missing else self.clues:
                if any(re.search(pattern, problem) for problem in problems):
                    return advice
        return super().__call__(case, run)


look_at_layout = LookFor(
    (
        (
            "GroupsDiffer",
            "Make all groups of all dimensions in loops that are the same on every rank; keep those that "
            "you are in. Or let init_device_mesh do it.",
        ),
        (
            "coordinate|ranks of the group",
            "`order` begins with the innermost dimension, whose coordinate changes from one rank to the "
            "next. A mesh is written the other way round: its last dimension is the innermost. And "
            "`sizes` has an order of its own, which means nothing. A group holds the ranks that differ in "
            "that one coordinate alone, in rising order.",
        ),
        (
            "hosts",
            "Rank r runs on host r // per_host: count the different hosts among the group's ranks.",
        ),
        (
            "sum: ",
            "all_reduce writes into its tensor: give each dimension a clone of `x`, and its own group.",
        ),
        ("dict with the keys", "One entry for each dimension, under its name."),
        (
            "^deadlock",
            "Every rank goes through the dimensions in the same order, and calls all_reduce once in each.",
        ),
        (
            "Mesh should not be bigger|product|must (be )?divi",
            "The sizes multiply to world_size: the mesh's shape is the sizes, outermost first.",
        ),
    )
)

look_at_training_2d = LookForOnAll(
    (
        (
            "weights of its own",
            "Every rank has built its layers from a seed of its own. Rank 0's count: broadcast them to "
            "**all** ranks, before you cut them.",
        ),
        (
            "no step moves the weights",
            "The weights that are copied never change: does the optimizer step, and on the very "
            "parameters that you copy, which are `block.parameters()`?",
        ),
        (
            "first step has not been made",
            "The weights have not moved: the copies were made before `optimizer.step()`. They belong "
            "after it.",
        ),
        (
            "the part of tp coordinate",
            "tp is innermost: neighbours share a tp group. `init_device_mesh` takes the innermost "
            'dimension last: `mesh_dim_names=("dp", "tp")`.',
        ),
        (
            "began with the part of another",
            "This rank holds rank 0's **part** of the weights: broadcast the whole weights before you cut "
            "them, not the parts.",
        ),
        (
            "all entries hold the same",
            "The list keeps the same tensors step after step, and they change: put clones into it.",
        ),
        (
            "step is .* times",
            "Gradients are the mean over the dp group: a loss is a mean over this rank's share of the "
            "batch. In the tp group nothing is divided.",
        ),
        (
            "its shape",
            "`up` is cut by rows (`chunk(tp)`), `down` by columns (`chunk(tp, dim=1)`); the coordinate "
            "in the tp group says which part is yours.",
        ),
        (
            "entries, and|a list is wanted|each entry",
            "Return a list with one pair for each step: (part of up, part of down), as tensors.",
        ),
        (
            "and before that it was right",
            "The first step is right, a later one not: are the gradients cleared, and does each step take "
            "its own batch?",
        ),
        (
            "after step",
            "Which samples does this rank learn from? Those of its **dp** coordinate: ranks of one tp group "
            "see the same ones. Which group averages gradients? And begin from rank 0's weights.",
        ),
        (
            "^deadlock",
            "All members of a group must make the same calls in it. Does each rank take its groups from "
            "the mesh, and is the mesh made alike on all ranks?",
        ),
    )
)


look_at_experts = LookForOnAll(
    (
        (
            "^deadlock",
            "Every rank makes the same five calls, forward and backward, also with no token at all. And "
            "backward calls an exchange only if the exchange got a tensor with a graph: what the expert "
            "makes of no rows has one, a new empty tensor has none.",
        ),
        (
            "was not called",
            "Call the expert with no rows as well. Then its weights have a gradient of zeros and not "
            "None, on which an optimizer or DDP would stumble.",
        ),
        (
            "its expert saw",
            "Token i goes to expert choice[i], which is rank choice[i]. `bincount(minlength=world_size)` "
            "counts what you send to each; the others' counts for you arrive by all_to_all_single.",
        ),
        (
            "output: .*(shape)",
            "What comes back has one row for each of this rank's own tokens.",
        ),
        (
            "the gate is missing",
            "The result of a token is multiplied by its gate, the probability of its expert.",
        ),
        (
            "sorted by expert",
            "Results come back in the order in which the tokens were sent. Put each where its token was, "
            "`y[order] = back`, before you multiply by the gates.",
        ),
        (
            "sorted a second time",
            "`back[order]` sorts once more. To undo an order, write to it: `y[order] = back`.",
        ),
        (
            "the gates of others",
            "The gates are in the order of this rank's tokens, what comes back is sorted by expert. First "
            "`y[order] = back`, then times the gates.",
        ),
        (
            "output: ",
            "Look at one token: sorted by expert, it travels, is worked on, returns to the same place in "
            "the sorted order. Put it back where it was (`y[order] = back`), then multiply by its gate: "
            "its expert's probability.",
        ),
        (
            "gradient of the router: (there is none|.*differ)",
            "The router learns through the gate alone: multiply the output by the probability itself, not "
            "by a detached copy.",
        ),
        (
            "gradient of",
            "Both journeys of the tokens must be `Exchange.apply(...)`, and nothing in between detached: a "
            "plain all_to_all_single cuts the graph.",
        ),
        (
            "enforce fail",
            "The counts need one number for each rank, also for experts that nobody chose: "
            "`bincount(minlength=world_size)`.",
        ),
        (
            "size of tensor a",
            "The gates are one number for each row. `gate[:, None]` is a column, which multiplies whole "
            "rows; `gate` alone would multiply columns.",
        ),
        (
            "[Ss]plit|sizes|shape",
            "Splits are lists of whole numbers, one for each rank: `counts.tolist()`. Out: how many "
            "tokens you send to each rank; in: how many you get from each. On the way back they change "
            "places.",
        ),
    )
)

_SCRIPT_CLUES = (
    (
        r"makes \d+ steps?;",
        "One optimizer step for each `accumulate` microbatches.",
    ),
    (
        "different weights",
        "The ranks' gradients were not averaged, or not all of them. With DDP, in which backward does that "
        "happen, and in which must it? (Notebook 09.)",
    ),
    (
        r"step 1 is .* times",
        "The batch of a step is all microbatches of all ranks, and its loss is their mean. (Notebook 08.)",
    ),
    (
        "in another direction|the limit is",
        "One process clips one gradient, that of the whole batch. What is clipped here, and when? Does "
        "each microbatch count, and all of them alike?",
    ),
    (
        "of epoch 1 again",
        "A shuffled order should be another one in each epoch. (Notebook 07.)",
    ),
    (
        "other samples",
        "The sampler deals out the samples, a microbatch is the next batch_size of them.",
    ),
    (
        "evaluation mode",
        "Something put the model into evaluation mode. Who puts it back?",
    ),
    ("after step", "Are the gradients cleared after each step, and nowhere else?"),
    (
        "goes through",
        "Each test sample counts once, over all ranks together. A sampler makes the shares equally long; "
        "how? (Notebook 07.)",
    ),
    (
        "accuracies|returns nothing",
        "Right answers of all ranks by test samples of all ranks: every rank returns that.",
    ),
    ("all write", "The ranks have the same weights: one of them is enough to write the file."),
    (
        "does not load",
        "Whoever loads the file has no DDP: `model` is the plain model.",
    ),
    ("checkpoint", "Rank 0 saves `model.state_dict()` to `path` after every epoch."),
)


def look_at_script(case: Case, run: Run) -> str:
    """Say what the first thing wrong with a training script is an effect of."""
    failure = run.failure
    if isinstance(failure, (Deadlock, RankDied)):
        return (
            "Read the calls above: the ranks are not in the same one. A collective needs every rank: which "
            "one do only some of them reach?"
        )
    if failure is not None or case.judge is None:
        message = failure.error.message if isinstance(failure, RankFailed) else ""
        if "closed by peer" in message or "Connection" in message:
            return (
                "A rank has gone while another was in a call with it: do all make the same calls?"
            )
        return ""
    problem = case.judge(run)
    return next((advice for clue, advice in _SCRIPT_CLUES if re.search(clue, problem)), "")
