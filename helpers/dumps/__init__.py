"""Explain a hang of a job on a cluster from the flight-recorder dumps of its ranks.

    folder -> files -> entries, stacks -> merge -> Trace, states -> explain -> text, JSON, report

The files may come from anywhere, so reading them builds plain data only, and all sizes have limits.

Reading:
    files          a folder's dumps and stacks, by rank, and one line for each bad file
    plain_pickle   pickles without objects
    entries        a dump's calls and groups, in each version of the format
    stacks         stacks of py-spy, faulthandler and torch's debug server
    frames         the user's line in a stack
Explaining:
    merge          the calls of all ranks as one trace
    explain        why the job hangs, and which rank to look at first
    causes         causes that only dumps have, such as a rank without a dump
Showing:
    report         a page with lanes
    commands       `course explain`
"""
