"""Exercises of notebook 22: MPI, two roles in one job, Slurm, and the loss of stale samples."""
