"""Help the teacher: a live board, slides, programs, and what to say about each exercise.

    check -> outbox (a file next to the progress) -> sender --HTTP--> app -> store (SQLite) -> board -> page
    solved notebooks -> lesson -> slides, program, teacher_pages

`outbox` and `learner` run in the learner's kernel, everything else on the teacher's machine. Both sides of
the board share only `messages`.
"""
