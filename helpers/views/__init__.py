"""Pure functions from what happened to what a reader sees: lanes, timeline, traffic, wait graph.

Importing this package, or any module of it, does not import matplotlib: that happens when the
first picture is drawn.
"""
