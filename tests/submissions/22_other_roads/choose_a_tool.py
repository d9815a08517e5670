# %% right: from top to bottom
def choose_a_tool(job):
    if job["speaks_mpi"]:
        return ("srun" if job["slurm"] else "mpiexec"), "mpi"
    talk = "process group" if job["all_alike"] else "rpc"
    if job["slurm"]:
        return "srun torchrun", talk
    if job["from_a_function"] and job["machines"] == 1 and not job["restart"]:
        return "mp.spawn", talk
    return "torchrun", talk


# %% right: two helpers, a list
def start(machines, slurm, speaks_mpi, from_a_function, restart, **_):
    if slurm:
        return "srun" if speaks_mpi else "srun torchrun"
    if speaks_mpi:
        return "mpiexec"
    return "mp.spawn" if from_a_function and machines < 2 and not restart else "torchrun"


def talk(speaks_mpi, all_alike, **_):
    return "mpi" if speaks_mpi else "process group" if all_alike else "rpc"


def choose_a_tool(job):
    return [start(**job), talk(**job)]


# %% right: match
def choose_a_tool(job):
    match job:
        case {"speaks_mpi": True, "slurm": slurm}:
            return ("mpiexec", "srun")[slurm], "mpi"
        case {"slurm": True}:
            way = "srun torchrun"
        case {"from_a_function": True, "machines": 1, "restart": False}:
            way = "mp.spawn"
        case _:
            way = "torchrun"
    return way, ("rpc", "process group")[job["all_alike"]]


# %% wrong: torchrun for everything | wrong | says: They do not talk by process group
def choose_a_tool(job):
    return "torchrun", "process group"


# %% wrong: one string | wrong | says: Return two strings
def choose_a_tool(job):
    return "torchrun"


# %% wrong: the other way round | wrong | says: are swapped
def choose_a_tool(job):
    return "process group", "torchrun"


# %% wrong: a word that is not in the table | wrong | says: The first is one of mp.spawn
def choose_a_tool(job):
    return "spawn", "process group"


# %% wrong: spawns although something has to be restarted | wrong | says: restarts nothing
def choose_a_tool(job):
    if job["speaks_mpi"]:
        return ("srun" if job["slurm"] else "mpiexec"), "mpi"
    talk = "process group" if job["all_alike"] else "rpc"
    if job["slurm"]:
        return "srun torchrun", talk
    if job["from_a_function"] and job["machines"] == 1:
        return "mp.spawn", talk
    return "torchrun", talk


# %% wrong: spawns over several machines | wrong | says: reaches one machine only
def choose_a_tool(job):
    if job["speaks_mpi"]:
        return ("srun" if job["slurm"] else "mpiexec"), "mpi"
    talk = "process group" if job["all_alike"] else "rpc"
    if job["slurm"]:
        return "srun torchrun", talk
    if job["from_a_function"] and not job["restart"]:
        return "mp.spawn", talk
    return "torchrun", talk


# %% wrong: mpiexec under Slurm | wrong | says: Under Slurm `srun` starts MPI ranks itself
def choose_a_tool(job):
    if job["speaks_mpi"]:
        return "mpiexec", "mpi"
    talk = "process group" if job["all_alike"] else "rpc"
    if job["slurm"]:
        return "srun torchrun", talk
    if job["from_a_function"] and job["machines"] == 1 and not job["restart"]:
        return "mp.spawn", talk
    return "torchrun", talk


# %% wrong: no Slurm for one machine | wrong | says: Slurm has given the machines
def choose_a_tool(job):
    if job["speaks_mpi"]:
        return ("srun" if job["slurm"] else "mpiexec"), "mpi"
    talk = "process group" if job["all_alike"] else "rpc"
    if job["slurm"] and job["machines"] > 1:
        return "srun torchrun", talk
    if job["from_a_function"] and job["machines"] == 1 and not job["restart"]:
        return "mp.spawn", talk
    return "torchrun", talk


# %% wrong: RPC is forgotten | wrong | says: some ask, others answer
def choose_a_tool(job):
    if job["speaks_mpi"]:
        return ("srun" if job["slurm"] else "mpiexec"), "mpi"
    if job["slurm"]:
        return "srun torchrun", "process group"
    if job["from_a_function"] and job["machines"] == 1 and not job["restart"]:
        return "mp.spawn", "process group"
    return "torchrun", "process group"


# %% wrong: the function decides before Slurm does | wrong | says: Slurm has given the machines
def choose_a_tool(job):
    if job["speaks_mpi"]:
        return ("srun" if job["slurm"] else "mpiexec"), "mpi"
    talk = "process group" if job["all_alike"] else "rpc"
    if job["from_a_function"] and job["machines"] == 1 and not job["restart"]:
        return "mp.spawn", talk
    return ("srun torchrun" if job["slurm"] else "torchrun"), talk


# %% wrong: MPI decides only how it starts | wrong | says: uses MPI already
def choose_a_tool(job):
    talk = "mpi" if job["speaks_mpi"] and job["all_alike"] else "rpc"
    talk = "process group" if job["all_alike"] and not job["speaks_mpi"] else talk
    if job["speaks_mpi"]:
        return ("srun" if job["slurm"] else "mpiexec"), talk
    if job["slurm"]:
        return "srun torchrun", talk
    if job["from_a_function"] and job["machines"] == 1 and not job["restart"]:
        return "mp.spawn", talk
    return "torchrun", talk
