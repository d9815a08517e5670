# %% wrong: rows that do not divide are dropped | crashed | says: add rows of zeros on `src`


# %% wrong: tensor_split's fair shares | wrong | says: These are fair shares
