# %% wrong: strings, not numbers | wrong | says: make each of them an int


# %% wrong: the local rank is the rank | wrong | says: `local_rank` must come from LOCAL_RANK


# %% wrong: the node computed, as if all nodes were alike | wrong | says: \['nodes'\]: \d is not


# %% wrong: how many restarts there may be | wrong | says: `restart` must come from TORCHELASTIC_RESTART_COUNT


# %% wrong: alone it is rank 0 of 0 | wrong | says: Started by plain `python` a process is alone: rank 0 of 1
