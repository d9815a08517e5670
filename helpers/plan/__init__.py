"""Plan training runs: compute bytes and seconds from a model, a cluster and a layout.

    Model, Cluster, Layout  ->  memory.py, step_time.py  ->  search.py  ->  explorers/cost.py

All results are arithmetic on published formulas, and no ranks are started. Notebook 23 compares the results
with published runs.

Modules:
    model_size   a transformer in numbers
    cluster      a cluster in numbers
    layout       a model's distribution over GPUs
    presets      models and GPUs with names
    memory       the memory of a GPU
    step_time    the time of a step
    published    published runs and their speed
    search       all layouts of a model on a cluster
    transformer  a module built from the numbers of a model
"""
