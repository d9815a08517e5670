"""Run a function on real ranks.

launch() -> rank server --fork--> ranks -> frames (values, events, output) -> Run
launcher.py  server.py            worker.py  wire.py                           run.py

`%%ranks` (magics.py) works the same way, but its ranks (world.py) live on from cell to cell.

| the task   | options (passed from launch to the rank), payload, sending (pickles the function),        |
|            | sending_memory (shared memory), sending_state (hooks, gradients), unsendable, operators,  |
|            | cells, missing_name                                                                       |
| launching  | launcher, magics, connection, site (the server's other end), messages, stop, display      |
| the server | server, preload, preload_scan and import_state (its imports for all ranks), processes,    |
|            | scratch                                                                                   |
| a rank     | worker, new_process (as under torchrun), torch_fixes, stores, rank_context (API)          |
| its data   | wire (values), tracebacks (errors), status (where it is); none of them is trusted         |
| monitoring | world, monitor (how it ends), watch, threads and process_snapshot (deadlocks), budget,    |
|            | run, failures, advice                                                                     |
| settings   | settings, setting_kinds, seeds, own_modules (sent to ranks), clean_settings (for checks)  |
"""
