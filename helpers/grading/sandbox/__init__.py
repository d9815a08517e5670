"""A sandbox around a rank server that runs what strangers wrote, and what watches it.

levels --which level--> bubblewrap: template --fork--> template_inside, inside, seccomp | ranks
                       Landlock: landlocked, landlock, inside, seccomp                  | ranks
                       guard, cgroup: what all of it uses; traffic: what its ranks have sent
"""
