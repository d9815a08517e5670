"""Run a script on real ranks, unchanged, and explain what happened: `course run`, `run_script`.

    train.py -> read_script -> run_script -> launcher ==> ranks: in_rank runs it as `__main__`
                                                 |
             terminal <- output, waits ----------+--> Run -> ending -> text, JSON, annotation, report

The engine (`helpers.ranks`) starts and watches the ranks as for `launch`.

Before:
    read_script    the file, and what can be said without running it
In a rank:
    in_rank        a script as `__main__`, as torchrun's worker runs it
    own_spawn      a script's mp.spawn, whose processes are the ranks
    own_processes  a script's own processes, if it starts them as ranks
    own_helpers    a script's module called `helpers`
    step_watch     what the rank does in the first steps (`--check-steps`)
    step_records   the records of these steps
In the launcher:
    run_script     run_script()
    terminal       output with the rank's number, and a line that shows where each rank is
    stopping       Ctrl-C and SIGTERM
    step_findings  silent faults in the records of all ranks
    ending         exit code, words, JSON and GitHub's annotation
    report         a page with the player
    commands       `course run`
"""
