"""Exercises: one folder per notebook, one file per exercise.

shared.py      cases, rules and advice shared by several exercises of a notebook
in_ranks.py    (or a folder of that name) code that runs in the ranks: stopwatches, models, counters

The folder shared/ contains the same two modules for exercises of several notebooks.
"""
