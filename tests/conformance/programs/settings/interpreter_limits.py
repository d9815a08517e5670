"""Limits of the interpreter, the collector, sockets."""

import gc
import socket
import sys

SETS = True
sys.setrecursionlimit(4321)
sys.setswitchinterval(0.25)
sys.set_int_max_str_digits(5000)
gc.disable()
gc.set_threshold(77)
socket.setdefaulttimeout(12.0)


def main(rank, world_size):
    limits = sys.getrecursionlimit(), sys.getswitchinterval(), sys.get_int_max_str_digits()
    return limits, gc.isenabled(), gc.get_threshold()[0], socket.getdefaulttimeout()
