# %% wrong: efficiency of means, times of medians | wrong | says: seconds is right, but efficiency is [\d.]+, the truth
