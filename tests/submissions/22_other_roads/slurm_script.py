# %% right: as in the text
def slurm_script(name, nodes, gpus_per_node, minutes, script):
    return f"""#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --nodes={nodes}
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node={gpus_per_node} --cpus-per-task={8 * gpus_per_node}
#SBATCH --time={minutes}
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
srun torchrun --nnodes={nodes} --nproc-per-node={gpus_per_node} \\
    --rdzv-id=$SLURM_JOB_ID --rdzv-backend=c10d --rdzv-endpoint=$head:29400 {script}
"""


# %% right: short options, an array, Slurm's own variables
def slurm_script(name, nodes, gpus_per_node, minutes, script):
    hours, rest = divmod(minutes, 60)
    return "\n".join(
        [
            "#!/usr/bin/env bash",
            f"#SBATCH -J {name} -N {nodes}",
            "# one agent on each node",
            "#SBATCH --ntasks-per-node 1",
            f"#SBATCH --gres=gpu:{gpus_per_node} -c {8 * gpus_per_node}",
            f"#SBATCH -t {hours:02}:{rest:02}:00",
            "#SBATCH --output=%x-%j.log",
            "",
            "set -euo pipefail",
            "export OMP_NUM_THREADS=1",
            'hosts=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))',
            "endpoint=${hosts[0]}:$((20000 + SLURM_JOB_ID % 10000))",
            'args=(--nnodes "$SLURM_NNODES" --nproc_per_node "$SLURM_GPUS_ON_NODE")',
            'srun -c "$SLURM_CPUS_PER_TASK" --kill-on-bad-exit=1 torchrun "${args[@]}" --rdzv_backend c10d \\',
            '    --rdzv_endpoint "$endpoint" --rdzv_id "$SLURM_JOB_ID" ' + script,
        ]
    )


# %% right: torchrun by its module, the host name of the first node, which runs the script; days
def slurm_script(name, nodes, gpus_per_node, minutes, script):
    days, minutes = divmod(minutes, 24 * 60)
    asks = {
        "job-name": name,
        "nodes": nodes,
        "ntasks": nodes,
        "gpus-per-node": gpus_per_node,
        "cpus-per-gpu": 8,
        "time": f"{days}-{minutes // 60}:{minutes % 60}",
    }
    top = "".join(f"#SBATCH --{key}={value}\n" for key, value in asks.items())
    return (
        f"#!/bin/bash\n{top}export HEAD=$(hostname)\nsrun python -m torch.distributed.run --nnodes={nodes} "
        f"--nproc-per-node={gpus_per_node} --rdzv-backend=c10d --rdzv-id=${{SLURM_JOB_ID}} "
        f"--rdzv-endpoint=${{HEAD}}:29500 {script}\n"
    )


# %% right: torchrun's own word for one worker on each GPU
def slurm_script(name, nodes, gpus_per_node, minutes, script):
    return f"""#!/bin/bash
#SBATCH --job-name={name} --nodes={nodes} --ntasks-per-node=1
#SBATCH --gpus-per-node={gpus_per_node} --cpus-per-task={8 * gpus_per_node} --time={minutes}
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun --cpus-per-task={8 * gpus_per_node} torchrun --nnodes=$SLURM_NNODES --nproc-per-node=gpu --rdzv-id=$SLURM_JOB_ID \\
    --rdzv-backend=c10d --rdzv-endpoint=$head:29400 {script}
"""


# %% right: a bash on each node, the host filled in by the first
def slurm_script(name, nodes, gpus_per_node, minutes, script):
    return f"""#!/bin/bash
#SBATCH --job-name={name} --nodes={nodes} --ntasks-per-node=1
#SBATCH --gpus-per-node={gpus_per_node} --cpus-per-task={8 * gpus_per_node} --time={minutes}
srun --cpus-per-gpu=8 bash -c 'torchrun --nnodes={nodes} --nproc-per-node={gpus_per_node} --rdzv-id=$SLURM_JOB_ID \\
    --rdzv-backend=c10d --rdzv-endpoint='$(scontrol show hostnames $SLURM_JOB_NODELIST | head -1)':29400 {script}'
"""


# %% right: a login shell on each node, exec, the module, auto
def slurm_script(name, nodes, gpus_per_node, minutes, script):
    return f"""#!/bin/bash
#SBATCH --job-name={name} --nodes={nodes} --ntasks-per-node=1
#SBATCH --gpus-per-node={gpus_per_node} --cpus-per-task={8 * gpus_per_node} --time={minutes}
export HEAD=$(hostname)
exec srun --label -c{gpus_per_node * 8} /bin/sh -lc 'echo $SLURM_NODEID; exec python -u -m torch.distributed.run --nproc_per_node auto \\
    --nnodes={nodes} --rdzv-id=$SLURM_JOB_ID --rdzv-backend=c10d --rdzv-endpoint=$HEAD:29400 {script}'
"""


# %% wrong: as many tasks as GPUs | wrong | says: 8 torchrun agents on a node
def slurm_script(name, nodes, gpus_per_node, minutes, script):
    return f"""#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --nodes={nodes}
#SBATCH --ntasks-per-node={gpus_per_node}
#SBATCH --gpus-per-node={gpus_per_node} --cpus-per-gpu=8
#SBATCH --time={minutes}
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun torchrun --nnodes={nodes} --nproc-per-node={gpus_per_node} --rdzv-id=$SLURM_JOB_ID \\
    --rdzv-backend=c10d --rdzv-endpoint=$head:29400 {script}
"""


# %% wrong: without srun | wrong | says: runs on the first node only
def slurm_script(name, nodes, gpus_per_node, minutes, script):
    return f"""#!/bin/bash
#SBATCH --job-name={name} --nodes={nodes} --ntasks-per-node=1
#SBATCH --gpus-per-node={gpus_per_node} --cpus-per-gpu=8 --time={minutes}
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
torchrun --nnodes={nodes} --nproc-per-node={gpus_per_node} --rdzv-id=$SLURM_JOB_ID \\
    --rdzv-backend=c10d --rdzv-endpoint=$head:29400 {script}
"""


# %% wrong: an empty first line | wrong | says: the first line must say
def slurm_script(name, nodes, gpus_per_node, minutes, script):
    return f"""
#!/bin/bash
#SBATCH --job-name={name} --nodes={nodes} --ntasks-per-node=1
#SBATCH --gpus-per-node={gpus_per_node} --cpus-per-gpu=8 --time={minutes}
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun torchrun --nnodes={nodes} --nproc-per-node={gpus_per_node} --rdzv-id=$SLURM_JOB_ID \\
    --rdzv-backend=c10d --rdzv-endpoint=$head:29400 {script}
"""


# %% wrong: minutes where hours are read | wrong | says: minutes to Slurm; \d+ were asked for
def slurm_script(name, nodes, gpus_per_node, minutes, script):
    return f"""#!/bin/bash
#SBATCH --job-name={name} --nodes={nodes} --ntasks-per-node=1
#SBATCH --gpus-per-node={gpus_per_node} --cpus-per-gpu=8 --time={minutes}:00:00
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun torchrun --nnodes={nodes} --nproc-per-node={gpus_per_node} --rdzv-id=$SLURM_JOB_ID \\
    --rdzv-backend=c10d --rdzv-endpoint=$head:29400 {script}
"""


# %% wrong: all meet at localhost | wrong | says: on every other node localhost is that node itself
def slurm_script(name, nodes, gpus_per_node, minutes, script):
    return f"""#!/bin/bash
#SBATCH --job-name={name} --nodes={nodes} --ntasks-per-node=1
#SBATCH --gpus-per-node={gpus_per_node} --cpus-per-gpu=8 --time={minutes}
srun torchrun --nnodes={nodes} --nproc-per-node={gpus_per_node} --rdzv-id=$SLURM_JOB_ID \\
    --rdzv-backend=c10d --rdzv-endpoint=localhost:29400 {script}
"""


# %% wrong: the list as Slurm writes it | wrong | says: spells it out
def slurm_script(name, nodes, gpus_per_node, minutes, script):
    return f"""#!/bin/bash
#SBATCH --job-name={name} --nodes={nodes} --ntasks-per-node=1
#SBATCH --gpus-per-node={gpus_per_node} --cpus-per-gpu=8 --time={minutes}
srun torchrun --nnodes={nodes} --nproc-per-node={gpus_per_node} --rdzv-id=$SLURM_JOB_ID \\
    --rdzv-backend=c10d --rdzv-endpoint=$SLURM_JOB_NODELIST:29400 {script}
"""


# %% wrong: the whole world on each node | wrong | says: a node has \d GPU
def slurm_script(name, nodes, gpus_per_node, minutes, script):
    return f"""#!/bin/bash
#SBATCH --job-name={name} --nodes={nodes} --ntasks-per-node=1
#SBATCH --gpus-per-node={gpus_per_node} --cpus-per-gpu=8 --time={minutes}
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun torchrun --nnodes={nodes} --nproc-per-node={nodes * gpus_per_node} --rdzv-id=$SLURM_JOB_ID \\
    --rdzv-backend=c10d --rdzv-endpoint=$head:29400 {script}
"""


# %% wrong: static, the node's number filled in too early | wrong | says: read by one bash
def slurm_script(name, nodes, gpus_per_node, minutes, script):
    return f"""#!/bin/bash
#SBATCH --job-name={name} --nodes={nodes} --ntasks-per-node=1
#SBATCH --gpus-per-node={gpus_per_node} --cpus-per-gpu=8 --time={minutes}
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun torchrun --nnodes={nodes} --nproc-per-node={gpus_per_node} --node-rank=$SLURM_NODEID \\
    --master-addr=$head --master-port=29400 {script}
"""


# %% wrong: options below a command | wrong | says: stands below a command
def slurm_script(name, nodes, gpus_per_node, minutes, script):
    return f"""#!/bin/bash
set -e
#SBATCH --job-name={name} --nodes={nodes} --ntasks-per-node=1
#SBATCH --gpus-per-node={gpus_per_node} --cpus-per-gpu=8 --time={minutes}
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun torchrun --nnodes={nodes} --nproc-per-node={gpus_per_node} --rdzv-id=$SLURM_JOB_ID \\
    --rdzv-backend=c10d --rdzv-endpoint=$head:29400 {script}
"""


# %% wrong: two lines for one command | wrong | says: torchrun cannot read its words
def slurm_script(name, nodes, gpus_per_node, minutes, script):
    return f"""#!/bin/bash
#SBATCH --job-name={name} --nodes={nodes} --ntasks-per-node=1
#SBATCH --gpus-per-node={gpus_per_node} --cpus-per-gpu=8 --time={minutes}
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun torchrun --nnodes={nodes} --nproc-per-node={gpus_per_node} --rdzv-id=$SLURM_JOB_ID
    --rdzv-backend=c10d --rdzv-endpoint=$head:29400 {script}
"""


# %% wrong: printed, not returned | wrong | says: a string; got None
def slurm_script(name, nodes, gpus_per_node, minutes, script):
    print(f"#!/bin/bash\n#SBATCH --job-name={name}\nsrun torchrun {script}")


# %% wrong: each node's own name | wrong | says: on the last node, came to
def slurm_script(name, nodes, gpus_per_node, minutes, script):
    return f"""#!/bin/bash
#SBATCH --job-name={name} --nodes={nodes} --ntasks-per-node=1
#SBATCH --gpus-per-node={gpus_per_node} --cpus-per-gpu=8 --time={minutes}
srun bash -c 'torchrun --nnodes={nodes} --nproc-per-node={gpus_per_node} --rdzv-id=$SLURM_JOB_ID \\
    --rdzv-backend=c10d --rdzv-endpoint=$(hostname):29400 {script}'
"""


# %% wrong: a variable that srun's bash does not know | wrong | says: only after `export`
def slurm_script(name, nodes, gpus_per_node, minutes, script):
    return f"""#!/bin/bash
#SBATCH --job-name={name} --nodes={nodes} --ntasks-per-node=1
#SBATCH --gpus-per-node={gpus_per_node} --cpus-per-gpu=8 --time={minutes}
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun bash -c 'torchrun --nnodes={nodes} --nproc-per-node={gpus_per_node} --rdzv-id=$SLURM_JOB_ID \\
    --rdzv-backend=c10d --rdzv-endpoint=$head:29400 {script}'
"""


# %% wrong: how many nodes is not said | wrong | says: was not told --nnodes, and takes 1
def slurm_script(name, nodes, gpus_per_node, minutes, script):
    return f"""#!/bin/bash
#SBATCH --job-name={name} --nodes={nodes} --ntasks-per-node=1
#SBATCH --gpus-per-node={gpus_per_node} --cpus-per-gpu=8 --time={minutes}
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun torchrun --nproc-per-node={gpus_per_node} --rdzv-id=$SLURM_JOB_ID \\
    --rdzv-backend=c10d --rdzv-endpoint=$head:29400 {script}
"""


# %% wrong: no word of CPUs | wrong | says: by default a task has one CPU
def slurm_script(name, nodes, gpus_per_node, minutes, script):
    return f"""#!/bin/bash
#SBATCH --job-name={name} --nodes={nodes} --ntasks-per-node=1
#SBATCH --gpus-per-node={gpus_per_node} --time={minutes}
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun torchrun --nnodes={nodes} --nproc-per-node={gpus_per_node} --rdzv-id=$SLURM_JOB_ID \\
    --rdzv-backend=c10d --rdzv-endpoint=$head:29400 {script}
"""


# %% wrong: the CPUs are not said to srun | wrong | says: does not take it over
def slurm_script(name, nodes, gpus_per_node, minutes, script):
    return f"""#!/bin/bash
#SBATCH --job-name={name} --nodes={nodes} --ntasks-per-node=1
#SBATCH --gpus-per-node={gpus_per_node} --cpus-per-task={8 * gpus_per_node} --time={minutes}
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun torchrun --nnodes={nodes} --nproc-per-node={gpus_per_node} --rdzv-id=$SLURM_JOB_ID \\
    --rdzv-backend=c10d --rdzv-endpoint=$head:29400 {script}
"""


# %% wrong: the variable is not exported | wrong | says: export SRUN_CPUS_PER_TASK
def slurm_script(name, nodes, gpus_per_node, minutes, script):
    return f"""#!/bin/bash
#SBATCH --job-name={name} --nodes={nodes} --ntasks-per-node=1
#SBATCH --gpus-per-node={gpus_per_node} --cpus-per-task={8 * gpus_per_node} --time={minutes}
SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun torchrun --nnodes={nodes} --nproc-per-node={gpus_per_node} --rdzv-id=$SLURM_JOB_ID \\
    --rdzv-backend=c10d --rdzv-endpoint=$head:29400 {script}
"""


# %% wrong: one CPU for all | wrong | says: was asked for
def slurm_script(name, nodes, gpus_per_node, minutes, script):
    return f"""#!/bin/bash
#SBATCH --job-name={name} --nodes={nodes} --ntasks-per-node=1
#SBATCH --gpus-per-node={gpus_per_node} --cpus-per-task=1 --time={minutes}
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun torchrun --nnodes={nodes} --nproc-per-node={gpus_per_node} --rdzv-id=$SLURM_JOB_ID \\
    --rdzv-backend=c10d --rdzv-endpoint=$head:29400 {script}
"""


# %% wrong: another number for srun | wrong | says: were asked for
def slurm_script(name, nodes, gpus_per_node, minutes, script):
    return f"""#!/bin/bash
#SBATCH --job-name={name} --nodes={nodes} --ntasks-per-node=1
#SBATCH --gpus-per-node={gpus_per_node} --cpus-per-task={8 * gpus_per_node} --time={minutes}
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun --cpus-per-task=1 torchrun --nnodes={nodes} --nproc-per-node={gpus_per_node} --rdzv-id=$SLURM_JOB_ID \\
    --rdzv-backend=c10d --rdzv-endpoint=$head:29400 {script}
"""


# %% wrong: a command that is not there | wrong | says: neither `srun torchrun
def slurm_script(name, nodes, gpus_per_node, minutes, script):
    return f"""#!/bin/bash
#SBATCH --job-name={name} --nodes={nodes} --ntasks-per-node=1
#SBATCH --gpus-per-node={gpus_per_node} --cpus-per-task={8 * gpus_per_node} --time={minutes}
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srunx torchrun --nnodes={nodes} --nproc-per-node={gpus_per_node} --rdzv-id=$SLURM_JOB_ID \\
    --rdzv-backend=c10d --rdzv-endpoint=$head:29400 {script}
"""
