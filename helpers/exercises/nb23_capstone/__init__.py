"""Exercises of notebook 23: lay out a mesh, train on it, debug a script, plan a run."""
