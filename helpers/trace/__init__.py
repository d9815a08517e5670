"""Record how ranks communicate, and explain a run from its records.

    rank: kernels -> recorder -> log ==lines==> launcher: collector -> Trace -> diagnosis, views, checks

Data:
    events                events, traces, waits and diagnoses, without torch; the limits of a trace
    wording               words that reports share, such as "ranks 0 and 1"
In a rank:
    kernels               the kernels that see every communication call
    c10d_ops              a table of torch's operations, with what is recorded of each
    recorder              the records of the calls
    frames                the learner's line and torch's function on the stack
    tensor_summary        a tensor's values as a short text
    log                   the records in memory that launcher and rank share
In the launcher:
    collector             records of all ranks, combined to a trace
    clocks                one clock for several hosts
    chrome                traces in Chrome's format, and torch's profiles
    volume                the bytes that a rank sends in a call
Why no rank continues:
    diagnosis             where the diagnosis of a deadlock or a timeout begins
    rank_state            a rank's state as its launcher sees it
    waits                 which rank waits for which, and whether it can still continue
    causes                the table of all causes, with their priorities: add yours here
    causes_collectives    groups in different orders, and backward passes
    causes_messages       waits, tags, peers, cycles
    causes_missing_calls  ended ranks, and calls without a counterpart
    causes_outside        keys, file locks, and the ranks' own code
    causes_setup          init_process_group and new_group
    different_calls       words and advice on collectives that differ
    mismatch              the calls that differ
    joins                 the numbers that ranks pass to init_process_group
Advice on other runs:
    departure             a rank that left while others lost their connections to it
    silent                faults without an error: dtypes, and calls without a wait

Advice on single errors is in `helpers/ranks/advice.py`; advice on wrong answers is in `helpers/checks`.
"""
