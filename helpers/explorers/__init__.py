"""Pictures with controls: change a number, and see the effect immediately. Use them with `explore`.

Parts shared by explorers:
    explore      explore()
    form         the form of an explorer
    in_ranks     functions that run on ranks
Explorers, each with a script of the same name:
    algorithms   all-reduce as ring and tree
    buckets      DDP's buckets during backward
    checkpoints  how often to write a checkpoint
    collective   a collective on real ranks
    cost         the cost model
    memory       memory of a rank under ZeRO
    pipeline     pipeline schedules
    samples      samples of DistributedSampler
For your functions:
    break_it     a run with a late rank, a missing call or a slow link
"""
