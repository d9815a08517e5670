# %% wrong: rows are cut in place of columns | crashed | says: cut `x` by columns
