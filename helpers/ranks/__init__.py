"""Run a function on real ranks.

launch() -> rank server --fork--> ranks -> frames (values, events, output) -> Run
launcher.py  server.py            worker.py  wire.py                           run.py

`%%ranks` (magics.py) works the same way, but keeps its ranks (world.py) running from cell to cell.

The task:
    launch_options    the options of a launch, from the call to the rank
    payload           function and arguments as bytes
    sending           a notebook's definitions, pickled by value
    sending_memory    tensors that share memory
    sending_state     hooks, gradients and attributes
    operators         custom operators of torch
    unsendable        reasons why a variable cannot be sent
    cells             the reader's names of cells and files
    missing_name      advice on a name that the ranks of `%%ranks` do not have
Launching:
    launcher          launch()
    magics            %%ranks
    connection        the launcher's connection to the rank server
    placement         the place of a rank server: next to the launcher, or in a sandbox
    json_messages     short messages between processes
    stop              Stop, or Ctrl-C
    display           the view of a launch in the notebook
The server:
    server            the process that forks ranks
    shared_torch      a rank server that shares torch's memory with the kernel
    preload           imports before the fork
    preload_scan      imports named in a program's text
    huge_pages        large pages of memory, for faster forks
    import_state      whether the server's imports match those of the program
    processes         processes and their descendants
    scratch           files left by ranks
A rank:
    worker            the code inside a rank
    new_process       new processes for ranks, as under torchrun
    torch_fixes       workarounds for errors of torch
    stores            waiting for keys of a store
    joining           a rank's arguments of init_process_group
    rank_context      functions for code in a rank, such as span()
Data from ranks, which is never trusted:
    wire              values as bytes
    tracebacks        errors
    thread_errors     errors that ended threads
    status            the rank's current line and call
    quiet_threads     whether background threads can communicate
How a world ends:
    world             running ranks
    monitor           a world from start to end
    deadlock_watch    detection of deadlocks; `helpers/trace/diagnosis.py` explains them
    threads           threads and sockets of a process
    process_snapshot  the processes of all ranks
    budget            the time used by a world
    run               the result
    failures          one error for each kind of failure
    advice            the table of advice on errors of torch and Python: add yours here
Settings:
    carried_settings  settings of the whole process, sent to ranks
    process_settings  a list of these settings
    seeds             random states
    own_modules       changes in the learner's modules
    clean_settings    settings for a check
"""
