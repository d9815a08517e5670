"""Plan training runs: compute bytes and seconds from a model, a cluster and a layout.

    Model, Cluster, Layout  ->  memory.py, step_time.py  ->  search.py  ->  explorers/cost.py

Everything is arithmetic on published formulas; no rank is started. Notebook 23 compares the results with
published runs.
"""
