"""Skip tests on machines that cannot run a hub."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys

import pytest


def missing() -> str:
    """Return why no hub can run here, or ""."""
    if sys.platform != "linux" or os.geteuid():
        return "needs root on Linux: it makes system users"
    if importlib.util.find_spec("jupyterhub") is None:
        return "needs jupyterhub: pip install -c constraints.txt -e '.[hub]'"
    programs = ("configurable-http-proxy", "useradd", "userdel", "chpasswd", "unshare")
    lacking = [name for name in programs if shutil.which(name) is None]
    if lacking:
        return f"needs {', '.join(lacking)}"
    return "" if os.path.exists("/etc/pam.d/login") else "needs PAM with a service `login`"


@pytest.fixture(scope="session", autouse=True)
def a_hub_can_run() -> None:
    if reason := missing():
        pytest.skip(reason)
