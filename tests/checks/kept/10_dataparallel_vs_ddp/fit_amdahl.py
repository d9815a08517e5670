# %% wrong: the mean of Karp and Flatt, the smallest world taken for one rank | wrong | says: serial is [\d.]+, the truth is


# %% wrong: what is left at the largest world | crashed | says: has not every number of ranks
