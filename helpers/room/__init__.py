"""Show a teacher each learner's progress on a live board.

    check -> outbox (a file next to the progress) -> sender --HTTP--> app -> store (SQLite) -> board -> page

`outbox` and `learner` run in the learner's kernel, everything else on the teacher's machine. The two sides
share only `board_messages`.

Learner:
    learner         join() and help_me()
    outbox          events that the board has not received yet
Both:
    board_messages  messages between learners and board
Board:
    commands        `course room`
    serve           a room from its start to its end
    hub             a room run as a service of JupyterHub
    app             the web application
    connections     limits on silent connections
    store           the database
    board           the state of the board, as data
    play            a page about a known mistake
    pages           HTML from templates
"""
