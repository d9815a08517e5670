"""Run single ranks of a world that does not exist: `imagine(f, 1024, ranks=[0, 517])`.

imagine.py (launcher's side)  ->  in_rank.py (in each process)  ->  functional.py (collectives of DTensor)
"""
