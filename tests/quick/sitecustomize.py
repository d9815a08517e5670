"""Read by each Python that a test starts: a third less time for importing torch and for ending.

torch makes a million objects that stay; looking through them again and again meanwhile, and once more at
the end, finds nothing. Tests start some hundred such processes. `tests/conftest.py` names this folder.
"""

import atexit
import gc

gc.set_threshold(100_000, 50, 50)
atexit.register(gc.freeze)
