"""Run an unchanged script on real ranks, and explain the result: `course run`, `run_script`.

    train.py -> read_script -> run_script -> launcher ==> ranks: in_rank runs it as `__main__`
                                                 |
             terminal <- output, waits ----------+--> Run -> ending -> text, JSON, annotation, report

The engine (`helpers.ranks`) starts and watches the ranks as for `launch`.

Before:
    read_script    reading the file, and problems that appear without running it
In a rank:
    in_rank        running a script as `__main__`, like a worker of torchrun
    own_spawn      a script's call of mp.spawn, replaced by the ranks
    own_processes  a script's processes, replaced by the ranks
    own_helpers    a script's own module called `helpers`
    step_watch     recording the first steps (`--check-steps`)
    step_records   the records of these steps
In the launcher:
    run_script     run_script()
    terminal       output with rank numbers, and a line with each rank's position
    stopping       Ctrl-C and SIGTERM
    step_findings  silent faults in the records of all ranks
    ending         exit code, texts, JSON and GitHub's annotation
    report         a page with the player
    commands       `course run`
"""
