"""Grading a class: a sandbox around the checks of `helpers.exercises`, a batch over many files, reports.

    folder --roster--> Submission --grader (in a sandbox)--> Record (JSON) --reports--> pages, gradebooks
                                       |                        |
                                     cache                    run log

The checks, the engine and the way an answer is found are those of the notebook; nothing here judges.
"""
