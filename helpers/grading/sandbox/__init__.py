"""A sandbox around a rank server that runs what strangers wrote, and what watches it.

levels --which level--> bubblewrapped --fork--> template_inside, inside, seccomp | ranks
                    `-> landlocked ----------> inside, landlock, seccomp         | ranks
                        guard, cgroup: watch and end it
"""
