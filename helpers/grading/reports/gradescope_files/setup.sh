#!/usr/bin/env bash
# Installs the course in the autograder's image, which Gradescope builds (Ubuntu, as root).
# AUTOGRADER stands for /autograder, so that the same script can be tried elsewhere.
set -euo pipefail

AUTOGRADER="${AUTOGRADER:-/autograder}"
SOURCE="$AUTOGRADER/source"

if command -v apt-get > /dev/null && [ "$(id -u)" = 0 ] && [ -z "${NO_APT:-}" ]; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update
    # bubblewrap is the strongest sandbox; without it Landlock is used
    apt-get install -y bubblewrap || true
    apt-get install -y python3.12 python3.12-venv || apt-get install -y python3.11 python3.11-venv
fi

COURSE_PYTHON="${COURSE_PYTHON:-}"
for name in python3.14 python3.13 python3.12 python3.11 python3; do
    [ -n "$COURSE_PYTHON" ] && break
    if "$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then
        COURSE_PYTHON="$name"
    fi
done
if [ -z "$COURSE_PYTHON" ]; then
    echo "No Python >= 3.11 with its venv module: choose a newer base image (Ubuntu 24.04)." >&2
    exit 1
fi

cd "$SOURCE/course"
"$COURSE_PYTHON" -m venv "$AUTOGRADER/venv"
"$AUTOGRADER/venv/bin/python" -m pip install --disable-pip-version-check --no-cache-dir -c constraints.txt -e .

# Submissions must not read these. The sandbox does the rest.
chmod 600 "$SOURCE/secret"
chmod 700 "$SOURCE"
