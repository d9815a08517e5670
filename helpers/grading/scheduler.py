"""Grade on a Dask cluster, for a class that would take too long on one machine.

    jobs --bytes of each file--> workers, each with a complete course and a sandbox --> records

`course grade --scheduler ADDRESS` uses the cluster instead of local processes. The same version of the course
must be installed on each worker machine. Otherwise the worker is reported, and its submissions receive no
verdict.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

from helpers.answers.notebook import read_bytes
from helpers.answers.reader import UnreadableNotebook
from helpers.grading.cache import Cache, current_versions
from helpers.grading.grade_options import CannotGrade
from helpers.grading.grader import Grader
from helpers.grading.record import Record, Status, from_json
from helpers.grading.reference_health import References, solutions_folder
from helpers.grading.sandbox.batch_lock import BatchLock
from helpers.grading.sandbox.cleanup import hold_folder, remove_unheld_folders
from helpers.grading.sandbox.levels import Plan, protection_here
from helpers.grading.sandbox.limits import Limits
from helpers.grading.sandbox.staged import StagedFiles
from helpers.grading.submissions import Job

_CONNECT_S = 5.0
# The folder shared by the workers of one machine, with a batch's cache and its lock.
_FOLDER_PREFIX = "real-ranks-batch-"


def grade_on_cluster(
    jobs: Sequence[Job], address: str, plan: Plan, secret: str
) -> Iterator[tuple[Job, Record]]:
    """Grade the jobs on the cluster at `address`. Yield records as they arrive. Raise CannotGrade."""
    try:
        from distributed import Client, as_completed
    except ModuleNotFoundError:
        raise CannotGrade("Dask is not installed here: pip install distributed.") from None
    try:
        client = Client(address, timeout=_CONNECT_S)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TimeoutError) as error:
        raise CannotGrade(f"no Dask scheduler answers at {address}: {error}") from None
    batch = token_hex(8)
    with client:
        futures = {}
        for job in jobs:
            try:
                content = read_bytes(job.path)
            except UnreadableNotebook as error:
                yield job, _not_graded(job, plan.level, Status.UNREADABLE, str(error))
                continue
            task = (job.learner, job.file, content, plan.level, secret, plan.limits, batch)
            # Without pure=False, Dask would merge the tasks of two equal files. retries: a worker may be
            # lost.
            futures[client.submit(grade_on_worker, *task, pure=False, retries=1)] = job
        # A worker with different checks would award different points for the same answer.
        mine = current_versions(plan.level, secret)
        for future in as_completed(futures):  # type: ignore[no-untyped-call]
            yield futures[future], _checked_record(futures[future], future, plan.level, mine)


def _checked_record(job: Job, future: Any, level: str, mine: Mapping[str, str]) -> Record:
    """Return a worker's record, or a fault if the worker's versions differ from those here."""
    if future.status != "finished":
        why = f"The cluster failed: {future.exception()!r}"[:500]
        return _not_graded(job, level, Status.HARNESS_FAULT, why)
    record = from_json(future.result())
    if record.status is not Status.UNREADABLE and record.versions != mine:
        theirs = ", ".join(f"{k} {v}" for k, v in record.versions.items() if mine.get(k) != v)
        why = f"A worker of the cluster has a different version ({theirs}): install the same version there."
        return _not_graded(job, level, Status.HARNESS_FAULT, why)
    return record


def grade_on_worker(
    learner: str, file: str, content: bytes, level: str, secret: str, limits: Limits, batch: str
) -> dict[str, Any]:
    """Grade one submission on a worker of the cluster. Return its record as JSON types.

    batch: the batch's secret name. The workers of a machine share a batch's cache and lock, so equal answers
    run once, and an answer that was too slow runs again while the others wait.
    """
    with TemporaryDirectory(prefix="real-ranks-job-") as folder:
        path = Path(folder) / os.path.basename(file)
        path.write_bytes(content)  # the class's folder may not exist on this machine
        return _grader(level, secret, limits, batch).grade(Job(learner, path, file)).as_json()


_thread_state = threading.local()
"""State of a worker's thread between tasks: the last request `asked`, and its `grader` and `stack`."""


def _grader(level: str, secret: str, limits: Limits, batch: str) -> Grader:
    """Return this thread's grader. Starting its template, a Python with torch, takes seconds."""
    asked = (level, secret, limits, batch)
    if getattr(_thread_state, "asked", None) != asked:
        if hasattr(_thread_state, "stack"):
            _thread_state.stack.close()
        stack = ExitStack()
        atexit.register(stack.close)
        slot = (os.getpid() * 7 + threading.get_ident()) % 3000
        remove_unheld_folders(_FOLDER_PREFIX)
        shared = stack.enter_context(hold_folder(Path(gettempdir(), f"{_FOLDER_PREFIX}{batch}")))
        lock = BatchLock(str(shared / "turns"))
        plan = stack.enter_context(Plan(level, stack.enter_context(StagedFiles()), limits, lock))
        references = References(solutions_folder(), plan, slot)
        cache, versions = Cache(shared), current_versions(level, secret)
        _thread_state.asked, _thread_state.stack = asked, stack
        _thread_state.grader = Grader(plan, secret, cache, versions, references, slot)
    grader = _thread_state.grader
    assert isinstance(grader, Grader)
    return grader


def _not_graded(job: Job, level: str, status: Status, why: str) -> Record:
    return Record(job.learner, job.file, "", status, message=why, protection=protection_here(level))
