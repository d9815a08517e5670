"""Explain a hang of a job on a cluster from the flight-recorder dumps of its ranks.

    folder -> files -> entries, stacks -> merge -> Trace, states -> explain -> text, JSON, report

The files may come from any source, so reading them only creates plain data, and all sizes are limited.

Reading:
    files          a folder's dumps and stacks, by rank, and a line for each bad file
    plain_pickle   pickles without objects
    entries        a dump's calls and groups, in each version of the format
    stacks         stacks from py-spy, faulthandler and torch's debug server
    frames         the user's line in a stack
Explaining:
    merge          the calls of all ranks as one trace
    explain        the cause of the hang, and the rank to look at first
    causes         causes found only in dumps, such as a rank without a dump
Showing:
    report         a page with lanes
    commands       `course explain`
"""
