"""Run a function on real ranks.

launch() -> rank server --fork--> ranks -> frames (values, events, output) -> Run
launcher.py  server.py            worker.py  wire.py                           run.py
"""
