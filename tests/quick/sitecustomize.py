"""Read by each Python that a test starts: importing torch and exiting take a third less time.

torch makes a million permanent objects. Garbage collections during its import, and once more at
the end, would find nothing. Tests start some hundred such processes. `tests/conftest.py` names this folder.
"""

import atexit
import gc

gc.set_threshold(100_000, 50, 50)
atexit.register(gc.freeze)
