"""Show a teacher on a live board how far each learner is.

    check -> outbox (a file next to the progress) -> sender --HTTP--> app -> store (SQLite) -> board -> page

`outbox` and `learner` run in the learner's kernel, everything else on the teacher's machine. The two sides
share only `messages`.
"""
