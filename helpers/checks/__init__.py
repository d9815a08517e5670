"""Check an answer: run it on real ranks, compare the results, and find advice for its author.

    check, graders -> grade -> case_runs (worlds, driver, judge) -> counterexample -> CheckResult

For authors of exercises:
    author             all names that an exercise's file needs
    exercise           an exercise
    kinds              kinds of exercises
    case               a case: inputs and the right result
    draw               difficult inputs
    named_parts        named parts of a result
    rules              rules on communication
    rules_collectives  rules on collectives
    rules_spans        rules on a rank's spans of work
    rules_transfers    rules on transfers in flight
    stopwatch          timings with known true values
    live_tensors       bytes of a process's tensors
Running a check:
    check              check()
    check_notebook     `course check`
    check_answer       one answer on all cases
    case_runs          step one: run and judge the cases
    counterexample     step two: the case to show, and advice
    worlds             cases in one world or several
    pass_all           cases of several secrets
    second_call        answers that are right only once
    limits             runs that a limit has ended
    fault              failures of the check itself
    listeners          notifying parts of the course of each result
In a rank:
    load_answer        building an answer from its source
    driver             calling answers as their kind requires
    adversarial        adversarial timing
    replaced           functions that an answer has replaced
    namespace_memory   whether memory of modules and classes has changed
Scripts:
    scripts            composing and running a script
    script_worker      a worker process of a script
    script_runs        a script's report as a run
Verdicts and advice:
    judge              the verdict on a case
    execution          comparing a case's values with the right ones
    relations          advice on wrong values
    failed_runs        verdicts on failed runs
    unwaited           advice on calls without a wait
    compare            values, part by part
    failure_advice     advice on failed runs
    missing_files      advice on missing modules and files
    answer_shape       facts about an answer's source, for advice
Known answers:
    answer_file        the file of an exercise's known answers
    edits              a program as an edit
    reference_source   the solution
    right_values       finding right values with the solution
    mistakes           known mistakes, each with a sentence
    match_mistakes     the known mistake that explains an answer
    known_outcomes     the known mistake of a script
    prove_answers      a proof of an answer file's claims
Lists:
    registry           all exercises
    headings           titles and hints, without torch
    task_sentences     sentences of a task, and their tests

To change advice: on a value, in `relations`; on a rule, in `judge`; on a failed run, in `failed_runs` and
`failure_advice`; on a known mistake, in the exercise's .answers file; on an error of torch, in
`helpers/ranks/advice.py`; on a deadlock, in `helpers/trace/causes.py`.
"""
