# %% wrong: torchrun for everything | wrong | says: They do not talk by process group


# %% wrong: a word that is not in the table | wrong | says: The first is one of mp.spawn
