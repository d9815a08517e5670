# %% wrong: fair shares | wrong | says: These are fair shares


# %% wrong: floats for whole numbers | wrong | says: its dtype is float64, not
