"""Find a learner's function, and the code that it needs, in a notebook's cells or a kernel's history.

    history (a kernel), notebook (a file) -> listing -> closure -> build -> Answer or Problem

Cells:
    history          the cells of a running kernel
    notebook         the cells of a file, which may be damaged or hostile
    file_kinds       files of a different kind
    magics           cells without IPython's special syntax
    listing          top-level statements of all cells
Statements:
    names            names bound, changed and used by a statement
    scopes           the scopes within a statement
    closure          all statements needed by an answer
    external_values  values that a rank cannot compute again
Answers:
    build            an answer from its statements
    notes            notes on the repairs of an answer
    data             the result: an answer or a problem
In a process with limits:
    reader           the parent
    reader_child     the child
"""
