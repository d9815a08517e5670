"""Run a script under the real agents that start ranks: torchrun, mpiexec.

torchrun() --> OwnedPrograms ==socket==> supervisor --> agents --> workers --output--> Round --> TorchrunRun
mpiexec()  --> owned.py          supervisor.py                                torchrun_log.py
                                            --> mpiexec -> ranks --output--------------> MpiRun

Nothing here forks a rank: a script runs as it does outside of the course, and the supervisor ends whatever it
leaves behind. ports.py: the ports at which the agents of a job meet.
"""
