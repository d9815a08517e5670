"""Exercises of notebook 22: MPI, two roles in one job, Slurm, and which tool to choose."""
