"""Run programs as learners paste them. Each must have the same outcome on forked ranks and in new processes.

A program is a part of a file `programs/TOPIC.py`, below a marker with its name and a title. Every rank calls
its function `main(rank, world_size)`, which returns plain values, prints or fails.

| constant              | meaning                                                                 |
|-----------------------|-------------------------------------------------------------------------|
| `WORLD_SIZE = 3`      | number of ranks (2 if it is missing)                                    |
| `INIT = False`        | the program joins the process group itself                              |
| `LIKE = "torchrun"`   | "plain" means a torchrun job; otherwise `mp.spawn` starts the ranks     |
| `FAILS = "KeyError"`  | its failure: an exception's class, a signal ("SIGABRT"), an exit        |
|                       | ("exit 3") or "hang"                                                    |
| `SETS = True`         | it makes permanent settings in a process: each way has a new kernel     |
| `DIFFERS = {...}`     | way -> (its outcome, the reason for the difference in words)            |

The ways are "plain" (new interpreters), "untraced" (`launch(main, n, trace=False)`), "launch",
"ranks" (the program as a `%%ranks` cell whose last line calls main) and "script" (under `course run`).

    programs/*.py -> entry -> plain  (script + in_rank) -> Outcome -+
                             -> kernel (cells + in_kernel) -> Outcome -+-> outcome.difference
                             -> course run (as_script + in_rank) -> Outcome -+
"""
