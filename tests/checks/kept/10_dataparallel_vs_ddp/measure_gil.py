# %% wrong: forgets that n threads do n pieces | wrong | says: there are n pieces of work


# %% wrong: the mean, the first lap in it, by the right formula | wrong | says: take the median
