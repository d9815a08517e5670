"""Exercises of notebook 12: a model in stages, and the schedules that keep them busy."""

from __future__ import annotations

from helpers.checks.rules import BytesSent, Count, OnlyCalls, Peers
from helpers.checks.rules_transfers import EachIsWaitedFor
from helpers.exercises.look_at_bubble import look_at_bubble
from helpers.exercises.look_at_pipeline import look_at_one_f_one_b, look_at_stage
from helpers.exercises.look_at_placement import look_at_split, look_at_torchs
from helpers.exercises.model import Exercise, Kind
from helpers.exercises.pipeline_cases import (
    bubble_cases,
    gpipe_cases,
    message_bytes,
    messages,
    neighbours,
    one_f_one_b_cases,
    split_bytes,
    split_cases,
    torchs_cases,
)
from helpers.exercises.rules_pipeline import PassedOnAtOnce

NOTEBOOK = "12_pipeline_parallel"
_PROGRAMMES = "helpers.exercises.pipeline_programmes"
_P2P = OnlyCalls(("send", "recv"))
_SCHEDULE = (
    _P2P,
    Peers(neighbours, "stages talk to their neighbours only"),
    Count(
        "send",
        messages,
        why="One activation onwards and one gradient back for each microbatch; the first stage has "
        "nobody before it, the last nobody after it.",
    ),
    BytesSent(message_bytes, "One activation or one gradient is one message."),
    PassedOnAtOnce(),
    EachIsWaitedFor(),
)

EXERCISES = (
    Exercise(
        "split_model",
        "12.1",
        "Split a model over two ranks",
        NOTEBOOK,
        Kind.MODULE,
        split_cases,
        (
            "One tensor crosses the border in forward, one in backward. Which is the second, and on "
            "which rank does it come to be?",
            "Rank 0: a = model[:cut](x), send a.detach(), receive a tensor like a, a.backward(it). "
            "Rank 1: receive into an empty tensor, call requires_grad_() on it, compute the loss, "
            "loss.backward(), and send the `.grad` of what it had received.",
            "b = torch.empty(len(y), model[cut].in_features, dtype=model[cut].weight.dtype); "
            "dist.recv(b, 0); b.requires_grad_(); loss = cross_entropy(model[cut:](b), y); "
            "loss.backward(); dist.send(b.grad, 0); return loss.detach()",
        ),
        minutes=10,
        difficulty=2,
        rules=(
            _P2P,
            Count("send", 1, why="The activation goes over, its gradient comes back."),
            BytesSent(split_bytes),
            EachIsWaitedFor(),
        ),
        programme=f"{_PROGRAMMES}:split_in_two",
        look=look_at_split,
    ),
    Exercise(
        "gpipe",
        "12.2",
        "GPipe",
        NOTEBOOK,
        Kind.MODULE,
        gpipe_cases,
        (
            "Two loops over the microbatches. Within one: from whom does a stage receive, what does it "
            "compute, to whom does it send? The first and the last stage leave one of these out.",
            "First loop, for each i: unless this is stage 0, receive x from rank - 1 into "
            "stage.empty(); y = stage.forward(i, x); unless this is the last stage, send y to "
            "rank + 1. The second loop is its mirror image with gradients.",
            "for i in range(microbatches): x = None; if rank > 0: x = stage.empty(); dist.recv(x, "
            "rank - 1); y = stage.forward(i, x); if rank < world_size - 1: dist.send(y, rank + 1). "
            "Then: grad = None; if rank < world_size - 1: grad = stage.empty(); dist.recv(grad, "
            "rank + 1); back = stage.backward(i, grad); if rank > 0: dist.send(back, rank - 1).",
        ),
        minutes=10,
        difficulty=2,
        rules=_SCHEDULE,
        programme=f"{_PROGRAMMES}:run_schedule",
        look=look_at_stage,
    ),
    Exercise(
        "bubble_fraction",
        "12.3",
        "The bubble",
        NOTEBOOK,
        Kind.LOCAL,
        bubble_cases,
        (
            "All stages together could have worked for (last end - first start) x number of stages. "
            "How much of that did they?",
            "The first start and the last end are taken over all spans of all stages. Add up the "
            "lengths of all spans, divide by the time there was, and subtract from 1.",
            "spans = [span for stage in busy for span in stage]; length = max(end for _, end in spans) "
            "- min(start for start, _ in spans); 1 - sum(end - start for start, end in spans) / "
            "(length * len(busy))",
        ),
        minutes=5,
        difficulty=1,
        look=look_at_bubble,
    ),
    Exercise(
        "one_f_one_b",
        "12.4",
        "1F1B",
        NOTEBOOK,
        Kind.MODULE,
        one_f_one_b_cases,
        (
            "Write two helpers, forward(i) and backward(i), with their transfers; they are those of "
            "your GPipe. Only the order of the calls is new.",
            "ahead = min(world_size - 1 - rank, microbatches). First forward(0) to forward(ahead - 1). "
            "Then for each i: forward(i + ahead) if there is one, and backward(i). Use isend, or "
            "neighbours send to each other at the same time.",
            "sends = []; in forward: y = stage.forward(i, x); sends.append((dist.isend(y, rank + 1), "
            "y)); backward alike with rank - 1. At the end: for work, _ in sends: work.wait().",
        ),
        minutes=15,
        difficulty=4,
        rules=_SCHEDULE,
        programme=f"{_PROGRAMMES}:run_schedule",
        look=look_at_one_f_one_b,
    ),
    Exercise(
        "with_torch_pipelining",
        "12.5",
        "With torch.distributed.pipelining",
        NOTEBOOK,
        Kind.MODULE,
        torchs_cases,
        (
            "Begin with the cell above. Which class stands for 1F1B, and where does the last stage "
            "get its losses?",
            "stage = PipelineStage(layers, rank, world_size, torch.device('cpu')); schedule = "
            "Schedule1F1B(stage, microbatches, loss_fn=loss_fn). Then step() with x on the first "
            "stage, with target and losses on the last, with nothing between.",
            "losses = []; if rank == 0: schedule.step(x); elif rank == world_size - 1: "
            "schedule.step(target=y, losses=losses); else: schedule.step(). Return losses on the last "
            "stage, None elsewhere.",
        ),
        minutes=8,
        difficulty=2,
        rules=(_P2P,),
        programme=f"{_PROGRAMMES}:run_torchs",
        look=look_at_torchs,
    ),
)
