"""Exercises of notebook 22: MPI, RPC, Slurm, and which of them to choose."""
