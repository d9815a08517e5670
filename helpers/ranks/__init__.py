"""Run a function on real ranks.

launch() -> rank server --fork--> ranks -> frames (values, events, output) -> Run
launcher.py  server.py            worker.py  wire.py                           run.py

`%%ranks` (magics.py) goes the same way, with ranks that stay (world.py) from cell to cell.

| asked for  | options (from launch to the rank), payload, sending (the function, pickled), unsendable, |
|            | operators, cells, missing_name                                                            |
| launching  | launcher, magics, connection, site (the server's other end), messages, stop, display      |
| the server | server, warm, wanted and import_state (what it imports for all ranks), processes, scratch |
| a rank     | worker, new_process (as under torchrun), torch_fixes, stores, inside (what code may ask)  |
| its words  | wire (values), raised (errors), status (where it is); none of them is trusted             |
| following  | world, follow (how it ends), watch and threads (stuck?), budget, run, failures, advice   |
| a kernel's | settings, setting_kinds, seeds, own_modules (sent to ranks), neutral (kept from checks)   |
"""
