"""An answer, and what a right one is.

answers.py   the learner's function and what it uses, from a kernel's history or a notebook file
model.py     Exercise, Case, Kind: declared in one module for each notebook (nb02_...)
drive.py     inside a rank: the answer's source becomes a function and is called
scripts.py   a script composed from the answer, under torchrun (in a rank); script_runs.py: its Run
judge.py     what the ranks gave back, against what they had to: a CaseVerdict
rules.py     how the ranks talked, against how they had to
check.py     check(fn) in a notebook; headless.py: `course check NOTEBOOK`
"""
