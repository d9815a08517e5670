"""Run a function on real ranks.

launch() -> rank server --fork--> ranks -> frames (values, events, output) -> Run
launcher.py  server.py            worker.py  wire.py                           run.py

`%%ranks` (magics.py) goes the same way, with ranks that stay (world.py) from cell to cell. What the
launcher and the server say to each other is messages.py; what keeps a process from being left behind
is processes.py.
"""
