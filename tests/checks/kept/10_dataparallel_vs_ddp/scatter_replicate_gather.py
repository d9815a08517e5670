# %% wrong: every replica gets all rows | wrong | says: the forwards got .* rows; `x.chunk\(workers\)` gives


# %% wrong: rows that do not divide are left out | wrong | says: the forwards got .* rows; `x.chunk\(workers\)` gives


# %% wrong: goes through the workers, of which there are more than chunks | crashed | says: fewer than it was asked for
