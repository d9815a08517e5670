"""A planner for training runs: from a model, a cluster and a layout to bytes and seconds.

    Model, Cluster, Layout  ->  memory.py, step_time.py  ->  search.py  ->  explorers/cost.py

All of it is arithmetic on published formulas; nothing here starts a rank. `published.py` holds the
configurations against which the formulas are checked.
"""
