"""Run a script under the real agents that start ranks: torchrun, mpiexec.

torchrun() --> OwnedPrograms ==socket==> supervisor --> agents --> workers --output--> Round --> TorchrunRun
mpiexec()  --> owned.py          supervisor.py                                torchrun_log.py
                                            --> mpiexec -> ranks --output--------------> MpiRun

Nothing here forks a rank: a script runs as it does outside of the course, and the supervisor ends whatever it
leaves behind.

Modules:
    torchrun      torchrun()
    torchrun_log  rounds and workers, from the output of agents
    mpiexec       mpiexec()
    owned         programs that end with this process
    supervisor    the process that owns them
    ports         ports at which the agents of a job meet
    stacks        where a worker was when a signal ended it
    run           the result
"""
