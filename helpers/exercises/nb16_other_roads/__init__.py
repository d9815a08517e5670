"""Exercises of notebook 16: MPI, RPC, Slurm, and which of them to take."""
