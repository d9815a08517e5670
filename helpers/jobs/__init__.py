"""Run a script under real agents, which start its ranks: torchrun, mpiexec.

torchrun() --> OwnedPrograms ==socket==> supervisor --> agents --> workers --output--> Round --> TorchrunRun
mpiexec()  --> owned.py          supervisor.py                                torchrun_log.py
                                            --> mpiexec -> ranks --output--------------> MpiRun

Ranks are not forked from a server: a script runs as it does outside the course, and the supervisor ends any
processes that the script leaves behind.

Modules:
    torchrun      torchrun()
    torchrun_log  rounds and workers, read from the output of agents
    mpiexec       mpiexec()
    owned         programs that end with this process
    supervisor    the process that owns them
    ports         ports for the agents of a job
    stacks        the stack of a worker killed by a signal
    run           the result
"""
