"""The live board: a teacher sees where a class is, and learners can raise a hand.

check -> outbox -- one file next to the progress -- sender --HTTP--> app -> store (SQLite) -> board -> page

`outbox` and `learner` run in the learner's kernel, everything else on the teacher's machine. Both sides know
`messages` only.
"""
