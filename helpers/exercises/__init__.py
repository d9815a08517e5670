"""One folder a notebook, one file an exercise: what a right answer is, and what to say of a wrong one.

shared.py      what several exercises of a notebook draw or say
in_ranks.py    (or a folder of that name) what runs in ranks with an answer: stopwatches, models, counters

The folder shared/ has the same two for what exercises of several notebooks use.
"""
