"""Run single ranks of a world that does not exist: `imagine(f, 1024, ranks=[0, 517])`.

Modules:
    imagine     the launcher's side
    in_rank     an imagined rank in its process
    functional  collectives of DTensor without values
"""
