"""Sandboxes around rank servers that run untrusted answers, and the guards that watch them.

levels --best level --> bubblewrapped --fork--> template_inside, inside, seccomp | ranks
                    `-> landlocked ----------> inside, landlock, seccomp         | ranks
                        guard, cgroup: watch the sandbox and end it
"""
