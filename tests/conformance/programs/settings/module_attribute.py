"""Attributes set on a module of one's own, by name, by its own function, and in place."""

import os
import sys

SETS = True
TEXT = """
import os
SCALE, LIMIT, OPTIONS, PID = 1, 1, {"a": 1}, os.getpid()
def set_limit(value):
    global LIMIT
    LIMIT = value
def read():
    return SCALE, LIMIT, OPTIONS, PID == os.getpid()
"""
with open(f"half-{os.getpid()}", "w") as file:
    file.write(TEXT)
os.replace(file.name, "conformance_settings_module.py")
sys.path.insert(0, os.getcwd())
import conformance_settings_module as mine  # noqa: E402

mine.SCALE = 10
mine.set_limit(20)
mine.OPTIONS["b"] = 2


def main(rank, world_size):
    return mine.read()
