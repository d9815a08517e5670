"""Start Dask clusters that end with this kernel: on this machine, by ssh, or by Slurm."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

from helpers.ranks.failures import LaunchError

# Timeout in seconds for Slurm to start a worker on each node. A busy cluster may need longer to allocate
# nodes. In this case it is better to allocate the nodes first, and to start the kernel inside the allocation.
_NODES_S = 60.0
_CONNECT_S = 8.0
_END_S = 5.0
# Address of Dask's HTTP server, which cannot be disabled. The default would be 0.0.0.0:8787.
_NO_FIXED_PORT = "127.0.0.1:0"


def local_cluster(n: int) -> Any:
    """Start a Dask cluster of `n` workers on this machine."""
    from distributed import LocalCluster

    return LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=n,
        threads_per_worker=1,
        dashboard_address=_NO_FIXED_PORT,
        security=_own_security(),
        silence_logs=logging.CRITICAL,  # silence messages about the exits of its processes
    )


def _own_security() -> Any:
    """Return a key known only to this process and required for connecting to the cluster.

    Without a key, every user of the machine could run programs as this user.
    """
    from distributed.security import Security

    try:
        return Security.temporary()  # type: ignore[no-untyped-call]
    except ImportError:
        raise LaunchError(
            "a cluster with its own key needs the package cryptography: pip install cryptography."
        ) from None


def _as_variables(security: Any) -> dict[str, str]:
    """Return the environment variables that pass the key to a Dask worker."""
    worker = security.get_tls_config_for_role("worker")
    return {
        "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True",
        "DASK_DISTRIBUTED__COMM__TLS__CA_FILE": worker["ca_file"],
        "DASK_DISTRIBUTED__COMM__TLS__WORKER__CERT": worker["cert"],
        "DASK_DISTRIBUTED__COMM__TLS__WORKER__KEY": worker["key"],
    }


def ssh_cluster(names: Sequence[str]) -> Any:
    """Start a scheduler on the first of these machines, and a worker on each of them."""
    try:
        import asyncssh
    except ModuleNotFoundError:
        raise LaunchError("hosts.ssh needs asyncssh: pip install 'real-ranks[hosts]'.") from None
    from distributed import SSHCluster

    if not names:
        raise LaunchError('hosts.ssh needs the names of machines: hosts.ssh("n1", "n2").')
    # Log in before starting Dask, because Dask does not report which machine failed.
    with ThreadPoolExecutor(1) as pool:  # the notebook's thread already runs an event loop
        problems = pool.submit(asyncio.run, _login_errors(names)).result()
    for name, problem in zip(names, problems, strict=True):
        if problem is not None:
            raise LaunchError(f"{name} cannot be reached over ssh: {problem}")
    try:
        return SSHCluster(
            [names[0], *names],
            connect_options={"connect_timeout": _CONNECT_S},
            worker_options={"nthreads": 1},
            scheduler_options={"port": 0, "dashboard_address": _NO_FIXED_PORT},
            remote_python=sys.executable,
            silence_logs=logging.CRITICAL,
        )
    except (OSError, RuntimeError, asyncssh.Error) as error:
        raise LaunchError(
            f"Dask did not start over ssh on {', '.join(names)}: {error}. Check that {sys.executable}, "
            "with Dask, exists there."
        ) from None


async def _login_errors(names: Sequence[str]) -> list[BaseException | None]:
    """Log in on each of these machines. Return the error of each login, or None."""

    async def log_in(name: str) -> None:
        import asyncssh

        async with asyncssh.connect(name, connect_timeout=_CONNECT_S):
            pass

    return await asyncio.gather(*map(log_in, names), return_exceptions=True)


class SlurmCluster:
    """A scheduler in this process, and `srun`, which starts a worker on each node of an allocation."""

    def __init__(self, nodes: int) -> None:
        from distributed import LocalCluster

        self.security = _own_security()
        inside = "SLURM_JOB_ID" in os.environ
        self._nodes = nodes or int(os.environ.get("SLURM_JOB_NUM_NODES", "1"))
        self._scheduler = LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=0,
            dashboard_address=_NO_FIXED_PORT,
            host=socket.gethostbyname(socket.gethostname()),
            security=self.security,
        )
        self.scheduler_address = str(self._scheduler.scheduler_address)
        # Without a nanny, a worker exits together with its scheduler, that is, with this process, even if
        # this process is killed. When all workers have exited, srun exits as well, which releases an
        # allocation that it has requested.
        worker = ["-m", "distributed.cli.dask_worker", self.scheduler_address, "--no-nanny"]
        worker += ["--nthreads", "1", "--no-dashboard", "--death-timeout", f"{_NODES_S:g}"]
        step = ["--overlap"] if inside else []  # the kernel itself may be a step of the allocation
        words = ["srun", f"--nodes={self._nodes}", "--ntasks-per-node=1", *step]
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (for the cluster's life)
        try:
            self._srun = subprocess.Popen(
                # Name workers by Slurm's node numbers, because ranks are placed in this order.
                [
                    *words,
                    "sh",
                    "-c",
                    'exec "$0" "$@" --name "$SLURM_NODEID"',
                    sys.executable,
                    *worker,
                ],
                env={**os.environ, **_as_variables(self.security)},
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                start_new_session=True,  # a Stop in the notebook must not end srun
            )
        except FileNotFoundError:
            self._scheduler.close()
            raise LaunchError(
                "srun is not installed: this machine does not belong to a Slurm cluster."
            ) from None

    def __enter__(self) -> Self:
        deadline = time.monotonic() + _NODES_S
        while len(self._scheduler.scheduler_info["workers"]) < self._nodes:
            if self._srun.poll() is not None or time.monotonic() > deadline:
                self._log.seek(0)
                said = self._log.read()[-1000:].decode(errors="replace").strip()
                self.close()
                raise LaunchError(f"Slurm has not started a worker on {self._nodes} nodes: {said}")
            time.sleep(0.1)
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._scheduler.close()
        self._srun.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._srun.wait(_END_S)
        self._srun.kill()
        self._srun.wait(_END_S)
        self._log.close()
