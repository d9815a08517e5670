"""A planner for training runs: from a model, a cluster and a layout to bytes and seconds.

    Model, Cluster, Layout  ->  memory.py, step_time.py  ->  search.py  ->  explorers/cost.py

All of it is arithmetic on published formulas; nothing here starts a rank. Notebook 23 compares it with
published runs.
"""
