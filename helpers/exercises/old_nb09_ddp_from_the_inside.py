"""Exercises of notebook 09: DistributedDataParallel, built and taken apart."""

from __future__ import annotations

from helpers.checks.rules import Count, Holds, OnlyCalls
from helpers.checks.rules_collectives import Awaited
from helpers.checks.rules_overlap import IssuedInside
from helpers.exercises.ddp_cases import (
    all_used,
    broadcast_cases,
    bucket_problem,
    bucketed_cases,
    compress_cases,
    compressed_bytes,
    compressed_calls,
    gradients_bytes,
    gradients_calls,
    half_the_bytes,
    hooked_cases,
    no_sync_cases,
    one_a_step,
    state_bytes,
    state_count,
    unused_cases,
    wrapper_bytes,
    wrapper_calls,
)
from helpers.exercises.look_at_comm import look_at_compressed, look_at_search, look_at_switch
from helpers.exercises.look_at_ddp import look_at_broadcast, look_at_buckets, look_at_hooked
from helpers.exercises.model import Exercise, Kind
from helpers.exercises.rules_gradients import TotalHandedIn

NOTEBOOK = "09_ddp_from_the_inside"
_PROGRAMMES = "helpers.exercises.ddp_programmes"
_WRAPPER = (
    OnlyCalls(("all_reduce", "broadcast")),
    TotalHandedIn(
        "parameters travel once, buffers before each forward",
        wrapper_bytes,
        wrapper_calls,
        lambda nbytes, case: (
            "Broadcast the parameters in __init__ only; equal gradients keep them equal."
        ),
        counts=lambda event: event.op == "broadcast",
    ),
)
_WAITS = Awaited(first="Keep the Work of each all_reduce, and call its wait() in finish().")
_DDPS_OWN = ("all_gather", "all_reduce", "broadcast")
"""What torch's wrapper calls by itself: it compares shapes and sends rank 0's state."""

EXERCISES = (
    Exercise(
        "broadcast_module",
        "9.1",
        "Broadcast a module",
        NOTEBOOK,
        Kind.MODULE,
        broadcast_cases,
        (
            "What does forward read besides the parameters? And which of it does an optimizer never "
            "touch?",
            "`module.parameters()` gives all parameters, frozen ones too, a shared one once; "
            "`module.buffers()` gives all buffers. Each is one broadcast from rank src.",
            "for t in [*module.parameters(), *module.buffers()]: dist.broadcast(t.detach(), src)",
        ),
        minutes=6,
        difficulty=1,
        rules=(
            OnlyCalls(("broadcast",)),
            TotalHandedIn(
                "each tensor travels once",
                state_bytes,
                state_count,
                lambda nbytes, case: (
                    "A weight with two names travels once (`parameters()` gives it once, "
                    "`state_dict()` twice), and objects are larger than their tensors."
                ),
            ),
            Awaited(),
        ),
        programme=f"{_PROGRAMMES}:broadcast_state",
        look=look_at_broadcast,
    ),
    Exercise(
        "HookedDDP",
        "9.2",
        "Average while backward runs",
        NOTEBOOK,
        Kind.MODULE,
        hooked_cases,
        (
            "Two moments: a gradient is ready (the hook), and all are wanted (finish). What can be done "
            "in the first without making backward wait?",
            "In __init__: `broadcast_module(module)`, an empty list, and a hook for each parameter with "
            "requires_grad. The hook starts an all_reduce of `p.grad` with async_op=True and keeps "
            "parameter and Work.",
            "finish(): for p, work in self.started: work.wait(); p.grad /= dist.get_world_size(). Then "
            "self.started.clear(), or the next step finds old Works.",
        ),
        minutes=15,
        difficulty=3,
        rules=(
            *_WRAPPER,
            TotalHandedIn(
                "each gradient travels once a step",
                gradients_bytes,
                gradients_calls,
                counts=lambda event: event.op == "all_reduce",
            ),
            IssuedInside("backward"),
            _WAITS,
        ),
        programme=f"{_PROGRAMMES}:train_wrapped",
        look=look_at_hooked,
    ),
    Exercise(
        "BucketedDDP",
        "9.3",
        "Buckets",
        NOTEBOOK,
        Kind.MODULE,
        bucketed_cases,
        (
            "Keep three things: the list of buckets, which gradients are ready, and how many buckets "
            "have left. When a hook runs, which bucket is the next that may leave?",
            "In the hook: add the parameter to a set; while the next bucket is complete, concatenate "
            "its flattened gradients, start the all_reduce, and go to the one after it. finish(): "
            "zeros for missing gradients, start the buckets that are left, wait for all, cut the "
            "means apart.",
            "torch.cat([p.grad.flatten() for p in bucket]) makes the flat tensor; "
            "flat.split([p.numel() for p in bucket]) cuts it; `p.grad = part.view_as(p)`. At the end "
            "of finish() the set is emptied and the count is 0 again.",
        ),
        minutes=20,
        difficulty=4,
        rules=(
            *_WRAPPER,
            Holds(bucket_problem, "one all_reduce for each bucket"),
            IssuedInside("backward", applies=all_used),
            _WAITS,
        ),
        programme=f"{_PROGRAMMES}:train_wrapped",
        look=look_at_buckets,
    ),
    Exercise(
        "no_sync",
        "9.4",
        "no_sync",
        NOTEBOOK,
        Kind.MODULE,
        no_sync_cases,
        (
            "The switch is read by forward. What must be there again when the block ends, however it "
            "ends?",
            "Keep the old value, set False, yield, put the old value back. An exception in the block "
            "comes out of the `yield`.",
            "old = ddp.require_backward_grad_sync; ddp.require_backward_grad_sync = False; try: yield; "
            "finally: ddp.require_backward_grad_sync = old",
        ),
        minutes=6,
        difficulty=2,
        rules=(
            OnlyCalls(_DDPS_OWN),
            Count(
                "all_reduce",
                one_a_step,
                why="That is once in each step, in the backward after the block.",
            ),
        ),
        programme=f"{_PROGRAMMES}:accumulate_unsynchronised",
        look=look_at_switch,
    ),
    Exercise(
        "find_unused",
        "9.5",
        "Find unused parameters",
        NOTEBOOK,
        Kind.MODULE,
        unused_cases,
        (
            "Begin at `output.grad_fn`. A node's `next_functions` are pairs; the first of a pair is the "
            "next node, or None.",
            "A list of nodes to visit and a set of nodes seen. A node with an attribute `variable` is "
            "the end of a branch: that parameter is used.",
            "todo, seen = [output.grad_fn], set(); while todo: node = todo.pop(); if node is None or "
            "node in seen: continue; seen.add(node); todo += [n for n, _ in node.next_functions]. "
            "Then compare `id(node.variable)` of the seen nodes with `id(p)`.",
        ),
        minutes=15,
        difficulty=3,
        rules=(OnlyCalls(()),),
        programme=f"{_PROGRAMMES}:search_graph",
        look=look_at_search,
        further=True,
    ),
    Exercise(
        "compress_gradients",
        "9.6",
        "Compress the gradients",
        NOTEBOOK,
        Kind.MODULE,
        compress_cases,
        (
            "`bucket.buffer()` is the flat tensor of the bucket's gradients. Which three things happen "
            "to it, and which of them only after the transfer?",
            "half = bucket.buffer().to(torch.float16) / world_size; start its all_reduce with "
            "async_op=True; the Work's `get_future()` has a method `then`.",
            "return work.get_future().then(lambda done: done.value()[0].to(bucket.buffer().dtype))",
        ),
        minutes=12,
        difficulty=3,
        rules=(
            OnlyCalls(_DDPS_OWN),
            Holds(half_the_bytes, "gradients travel as float16"),
            TotalHandedIn(
                "one all_reduce for each bucket",
                compressed_bytes,
                compressed_calls,
                counts=lambda event: event.op == "all_reduce",
            ),
            IssuedInside("backward"),
        ),
        programme=f"{_PROGRAMMES}:compress",
        look=look_at_compressed,
        further=True,
    ),
)
