"""Record how ranks communicate, and explain a run from its records.

    rank: kernels -> recorder -> log ==lines==> launcher: collector -> Trace -> diagnosis, views, checks

Data:
    events                events, traces, waits and diagnoses, and the limits of a trace; needs no torch
    wording               words shared by several reports, such as "ranks 0 and 1"
In a rank:
    kernels               the kernels that record every communication call
    c10d_ops              a table of torch's operations, with the recorded arguments of each
    recorder              the records of the calls
    frames                the learner's line and torch's function on the stack
    tensor_summary        a tensor's values as a short string
    log                   the records in memory shared by launcher and rank
In the launcher:
    collector             records of all ranks, combined into a trace
    clocks                one clock for several hosts
    chrome                traces in Chrome's format, and torch's profiles
    volume                the bytes that a rank sends in a call
Diagnosis:
    diagnosis             the entry points: diagnosis of a deadlock or a timeout
    rank_state            a rank's state, as known to its launcher
    waits                 the ranks' waits for each other, and whether they can still end
    cause                 what a cause is, and the priorities
    causes                all causes, by priority
    causes_collectives    groups in different orders, and backward passes
    causes_messages       waits, tags, peers, cycles
    causes_missing_calls  ended ranks, and calls without a counterpart
    causes_outside        keys, file locks, and the ranks' own code
    causes_setup          init_process_group and new_group
    causes_different_calls  words and advice on differing collectives
    mismatch              the differing calls
    joins                 the ranks' arguments of init_process_group
Advice on other runs:
    departure             a rank that left while others lost their connections to it
    silent                faults without an error: dtypes, and calls without a wait

Advice on single errors is in `helpers/ranks/advice.py`; advice on wrong answers is in `helpers/checks`.
"""
