"""A hub for a class on one machine: each learner is a system user, all share one read-only installation.

As root: /srv/real-ranks/.venv/bin/jupyterhub -f /srv/real-ranks/docs/hub/jupyterhub_config.py
docs/hub.md says how to set it up, and what each rule is for.
"""

import importlib.util
import os
import resource
import shutil
import sys
from pathlib import Path

from jupyterhub.spawner import LocalProcessSpawner

from helpers.course.workspace import set_up_jupyter

GB = 1 << 30
STATE = Path(os.environ.get("REAL_RANKS_HUB_STATE", "/srv/real-ranks-hub"))
BIN = Path(sys.executable).parent

c = get_config()  # noqa: F821 (JupyterHub puts it here)

# Once, as the only user who may write to the installation.
set_up_jupyter()

# --- the hub itself: its database, its cookies' secret and its process id are root's alone
STATE.mkdir(mode=0o711, parents=True, exist_ok=True)
(STATE / "hub").mkdir(mode=0o700, exist_ok=True)
c.JupyterHub.db_url = f"sqlite:///{STATE}/hub/jupyterhub.sqlite"
c.JupyterHub.cookie_secret_file = str(STATE / "hub" / "cookie_secret")
c.ConfigurableHTTPProxy.pid_file = str(STATE / "hub" / "proxy.pid")
c.JupyterHub.bind_url = "http://127.0.0.1:8000"  # put a server with TLS before it

# --- who may log in: system users of this group, with their passwords (PAM)
c.JupyterHub.authenticator_class = "pam"
c.PAMAuthenticator.allowed_groups = {"learners"}
c.PAMAuthenticator.admin_groups = {"teachers"}


class Spawner(LocalProcessSpawner):
    """Starts each learner's server as that learner, with limits that no cell can raise."""

    def make_preexec_fn(self, name):
        become_the_user = super().make_preexec_fn(name)

        def limit_and_become():
            # Each process: a tensor that is too large is an error in the cell that made it, and no
            # reason for the system to end somebody else's process.
            resource.setrlimit(resource.RLIMIT_DATA, (4 * GB, 4 * GB))
            # All processes and threads of this user together: 3 kernels, each with a world of 32 ranks.
            resource.setrlimit(resource.RLIMIT_NPROC, (1500, 1500))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            become_the_user()

        return limit_and_become


c.JupyterHub.spawner_class = Spawner
c.Spawner.cmd = [str(BIN / "jupyterhub-singleuser")]
c.Spawner.environment = {"REAL_RANKS_HUB": "1"}
c.Spawner.default_url = "/lab/tree/real-ranks/home.ipynb"
c.Spawner.start_timeout = 120  # a whole class that logs in at once

# --- what nobody uses goes: learners' files stay, and the next cell starts what it needs
c.Spawner.args = [
    # a kernel in which nothing has run for an hour, even if its page is still open in some tab
    "--MappingKernelManager.cull_idle_timeout=3600",
    "--MappingKernelManager.cull_interval=300",
    "--MappingKernelManager.cull_connected=True",
    # a server without kernels and without a page that anybody uses, an hour later
    "--ServerApp.shutdown_no_activity_timeout=3600",
]
# A class of thirty on two cores: their servers start a few at a time.
c.JupyterHub.concurrent_spawn_limit = 4

# --- the board of docs/room.md, where its packages are installed: everybody who is logged in has joined
if importlib.util.find_spec("uvicorn") is not None:
    from helpers.room.hub import give_token

    # It reads what learners send, so once its port is open it runs as a user who owns nothing else.
    (STATE / "room").mkdir(mode=0o700, exist_ok=True)
    shutil.chown(STATE / "room", "nobody", "nogroup")
    board = [str(BIN / "course"), "room", "serve", "--hub", "--user", "nobody"]
    c.JupyterHub.services = [
        {
            "name": "room",
            # Only root can open a port below 1024, so no learner's process can pose as the board.
            "url": "http://127.0.0.1:865",
            "command": [*board, "--file", str(STATE / "room" / "board")],
            "cwd": "/",
            "environment": {"REAL_RANKS_WORK": str(STATE / "room")},
            "oauth_no_confirm": True,
        }
    ]
    c.JupyterHub.load_roles = [{"name": "user", "scopes": ["self", "access:services!service=room"]}]
    c.Spawner.pre_spawn_hook = give_token
    c.Spawner.environment["REAL_RANKS_ROOM"] = f"{c.JupyterHub.bind_url}/services/room"
