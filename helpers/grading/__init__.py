"""Grade a class: a sandbox around the checks of `helpers.exercises`, batches of files, reports.

    answer --judging (in a sandbox)--> outcomes --results--> record (JSON) --reports--> pages, gradebooks
                                                  |            |
                                                cache       run log

`command` reads a class's `inputs`, starts a `batch` of processes that grade them, and writes `outputs`.
`grader` grades one file, one answer after another.

The checks, the engine and the search for answers are the same as in the notebooks, so this package adds no
verdicts.

The command:
    commands          the commands of `course` that grade
    command           `course grade`
    grade_options     its options
    inputs            all inputs, read in advance
    outputs           all files that it writes
Files and people:
    submissions       handed-in files
    owners            the owner of each file
    names             names in file names
    people            the class, and the instructor's files about the class
    roster            the class list from a platform
    group_work        people who handed in one file together
    table             tables of texts
    platforms         one file for each learning platform
Grading:
    batch             many files in parallel
    scheduler         a Dask cluster
    grader            one file
    judge_process     one answer, in a child of the grader
    sandbox           sandboxes and their guards
    cells             cell names as marks
    reference_health  whether the solution works on this machine
    machine_faults    outcomes that may be caused by the machine
    bypasses          names in an answer that a person should check
Results:
    results           a check's results as a record
    record            the record of a file
    cache             results of equal answers
    stale_results     results of removed files
    points            the worth of results
    reports           pages, gradebooks, other systems
    jplag_files       answers as files for comparison
Wrong answers of a class:
    class_mistakes    `course mistakes RESULTS`
    groups            answers that behave alike
To hand out:
    release           the learner's bundle
    disclosure        the known mistakes in the bundle
"""
