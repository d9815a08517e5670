"""Grading a class: a sandbox around the checks of `helpers.exercises`, a batch over many files, reports.

    answer --judging (in a sandbox)--> outcomes --results--> record (JSON) --reports--> pages, gradebooks
                                                  |            |
                                                cache       run log

`command` reads a class's `inputs`, has a `batch` of processes grade them, and writes `outputs`. `grader`
takes one file: its answers, one after the other.

The checks, the engine and the way an answer is found are those of the notebook; nothing here judges.
"""
