"""Grade a class: a sandbox around the checks of `helpers.exercises`, batches of files, reports.

    answer --judging (in a sandbox)--> outcomes --results--> record (JSON) --reports--> pages, gradebooks
                                                  |            |
                                                cache       run log

`command` reads a class's `inputs`, starts a `batch` of processes that grade them, and writes `outputs`.
`grader` grades one file, one answer after the other.

The checks, the engine and the search for answers are those of the notebooks; this package adds no verdicts.
"""
