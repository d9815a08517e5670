"""Run programs as learners paste them. Each must end on forked ranks as it ends in new processes.

A program is one file, `programs/TOPIC/NAME.py`: the first line is a docstring that says what it
does, `main(rank, world_size)` is what every rank calls. The function returns plain values, prints or
fails.

| constant              | what it says                                                            |
|-----------------------|-------------------------------------------------------------------------|
| `WORLD_SIZE = 3`      | how many ranks (2 if it is missing)                                |
| `INIT = False`        | the program joins the process group itself                            |
| `LIKE = "torchrun"`   | plain means a torchrun job; else `mp.spawn` starts the ranks            |
| `FAILS = "KeyError"`  | it ends badly, so: an exception's class, a signal ("SIGABRT"), an exit  |
|                       | ("exit 3") or "hang"                                                    |
| `SETS = True`         | it sets what stays in a process: each way has a kernel of its own       |
| `DIFFERS = {...}`     | way -> (how it ends there, why that must differ, in words)              |

The ways are "plain" (new interpreters), "untraced" (`launch(main, n, trace=False)`), "launch",
"ranks" (the file as a `%%ranks` cell whose last line calls main) and "script" (under `course run`).

    programs/*.py -> entry -> plain  (script + in_rank) -> Outcome -+
                             -> kernel (cells + in_kernel) -> Outcome -+-> outcome.difference
                             -> course run (as_script + in_rank) -> Outcome -+
"""
