"""Draw runs and results with pure functions: lanes, timeline, traffic, wait graph.

Importing this package, or any module of it, does not import matplotlib, which is imported when the first
picture is drawn.
"""
