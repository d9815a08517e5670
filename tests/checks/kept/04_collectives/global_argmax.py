# %% wrong: the last of equals | wrong | says: the lowest of them counts


# %% wrong: zeros where the values are negative | wrong | says: all negative


# %% wrong: the pair the other way round | wrong | says: in the other order: first the rank
