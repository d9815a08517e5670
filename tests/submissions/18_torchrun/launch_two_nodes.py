# %% right: a comprehension over the nodes
def launch_two_nodes(script, nproc_per_node, address, port):
    return [
        [
            "torchrun",
            "--nnodes=2",
            f"--nproc-per-node={nproc_per_node}",
            f"--node-rank={node}",
            f"--master-addr={address}",
            f"--master-port={port}",
            script,
        ]
        for node in range(2)
    ]


# %% right: flags and values as words of their own, with underscores
def launch_two_nodes(script, nproc_per_node, address, port):
    def command(node):
        words = ["torchrun", "--nnodes", "2", "--nproc_per_node", str(nproc_per_node)]
        words += ["--node_rank", str(node), "--master_addr", address, "--master_port", str(port)]
        return words + [script]

    return [command(0), command(1)]


# %% right: a line, split, static said aloud
def launch_two_nodes(script, nproc_per_node, address, port):
    import shlex

    line = (
        f"torchrun --nnodes=2 --nproc-per-node={nproc_per_node} --rdzv-backend=static "
        f"--master-addr={address} --master-port={port} --node-rank="
    )
    return [shlex.split(line + f"{node} {shlex.quote(script)}") for node in (0, 1)]


# %% wrong: both are node 0 | wrong | says: the command of node 1 says --node-rank=0
def launch_two_nodes(script, nproc_per_node, address, port):
    command = ["torchrun", "--nnodes=2", f"--nproc-per-node={nproc_per_node}"]
    command += [f"--master-addr={address}", f"--master-port={port}", script]
    return [command, command]


# %% wrong: nodes counted from one | wrong | says: the command of node 0 says --node-rank=1.*counted from 0
def launch_two_nodes(script, nproc_per_node, address, port):
    return [
        [
            "torchrun",
            "--nnodes=2",
            f"--nproc-per-node={nproc_per_node}",
            f"--node-rank={node}",
            f"--master-addr={address}",
            f"--master-port={port}",
            script,
        ]
        for node in (1, 2)
    ]


# %% wrong: the number of workers in all | wrong | says: each node has \d workers
def launch_two_nodes(script, nproc_per_node, address, port):
    return [
        [
            "torchrun",
            "--nnodes=2",
            f"--nproc-per-node={2 * nproc_per_node}",
            f"--node-rank={node}",
            f"--master-addr={address}",
            f"--master-port={port}",
            script,
        ]
        for node in range(2)
    ]


# %% wrong: numbers among the words | wrong | says: every word is a .str.
def launch_two_nodes(script, nproc_per_node, address, port):
    return [
        [
            "torchrun",
            "--nnodes",
            2,
            "--nproc-per-node",
            nproc_per_node,
            "--node-rank",
            node,
            "--master-addr",
            address,
            "--master-port",
            port,
            script,
        ]
        for node in range(2)
    ]


# %% wrong: the script before the flags | wrong | says: put the script last
def launch_two_nodes(script, nproc_per_node, address, port):
    return [
        [
            "torchrun",
            script,
            "--nnodes=2",
            f"--nproc-per-node={nproc_per_node}",
            f"--node-rank={node}",
            f"--master-addr={address}",
            f"--master-port={port}",
        ]
        for node in range(2)
    ]


# %% wrong: no address, so each would wait for itself | wrong | says: says --master-addr=127.0.0.1; all agents must go to
def launch_two_nodes(script, nproc_per_node, address, port):
    return [
        [
            "torchrun",
            "--nnodes=2",
            f"--nproc-per-node={nproc_per_node}",
            f"--node-rank={node}",
            f"--master-port={port}",
            script,
        ]
        for node in range(2)
    ]


# %% wrong: by c10d | wrong | says: does not ask for static rendezvous
def launch_two_nodes(script, nproc_per_node, address, port):
    command = ["torchrun", "--nnodes=2", f"--nproc-per-node={nproc_per_node}"]
    command += ["--rdzv-backend=c10d", f"--rdzv-endpoint={address}:{port}", script]
    return [command, command]


# %% wrong: a flag that does not exist | wrong | says: unrecognized arguments
def launch_two_nodes(script, nproc_per_node, address, port):
    return [
        [
            "torchrun",
            "--no_spawn",
            "--nnodes=2",
            f"--nproc-per-node={nproc_per_node}",
            f"--node-rank={node}",
            f"--master-addr={address}",
            f"--master-port={port}",
            script,
        ]
        for node in range(2)
    ]


# %% wrong: one string for each node | wrong | says: there is one string
def launch_two_nodes(script, nproc_per_node, address, port):
    return [
        f"torchrun --nnodes=2 --nproc-per-node={nproc_per_node} --node-rank={node} "
        f"--master-addr={address} --master-port={port} {script}"
        for node in range(2)
    ]
