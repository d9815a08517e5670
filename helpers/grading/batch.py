"""Grade a folder: many submissions in parallel, with progress, a log, and crash-proof records.

    find_submissions --jobs--> processes, each with a Grader --> Record --> OUT/records/NAME.json
                                                                  `--> OUT/log.jsonl

If a batch is killed at any moment, the same command continues where it stopped, because records are written
atomically and each exercise is cached as soon as it has run.
"""

from __future__ import annotations

import errno
import hashlib
import json
import multiprocessing
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from helpers.answers.notebook import UnreadableNotebook, read_bytes
from helpers.grading.cache import (
    Cache,
    CannotWrite,
    current_versions,
    reporting_write_errors,
    write_atomically,
)
from helpers.grading.grade_options import Setting
from helpers.grading.grader import Graded, Grader
from helpers.grading.record import Record, Status, from_json, read_records
from helpers.grading.reference_health import References, solutions_folder
from helpers.grading.reports.slugs import page_names
from helpers.grading.sandbox.levels import Plan, protection_here
from helpers.grading.scheduler import grade_on_cluster
from helpers.grading.submissions import Job
from helpers.views.plain import for_log, one_line

# A job and, if it should be tried again, the result of its first try.
_Task = tuple[Job, Graded | None]

# maximum length of a line for the instructor, because a learner may choose any folder name
_MAX_LINE_CHARS = 200
# The grader of a pool process. It is global because a pool's initializer, `_set_up_process`, cannot return
# it.
_grader: Grader


def grade_all(
    jobs: Sequence[Job], setting: Setting, plan: Plan, secret: str
) -> Generator[tuple[Job, Record], None, None]:
    """Grade the jobs. Yield each record as soon as it is written.

    An existing record of the same file, checks and versions is yielded unchanged.
    """
    paths = record_paths(jobs, setting.out)
    versions = current_versions(plan.level, secret)
    rest = []
    for job in jobs:
        if not setting.again and (kept := _stored_record(job, paths[job], versions)) is not None:
            yield job, kept
        else:
            rest.append(job)
    for job, record in grade_jobs(rest, setting, plan, secret):
        # write the log line first: a kill in between may cause a second line, but never loses a line
        _log(setting.out, job, record, paths[job])
        write_atomically(paths[job], json.dumps(record.as_json(), ensure_ascii=True).encode())
        yield job, record


def record_paths(jobs: Sequence[Job], out: Path) -> dict[Job, Path]:
    """Return the path of each job's record."""
    slugs = page_names(f"{job.learner} {job.file}" for job in jobs)
    return {
        job: out / "records" / f"{Path(slugs[f'{job.learner} {job.file}']).stem}.json"
        for job in jobs
    }


def grade_jobs(
    jobs: Sequence[Job], setting: Setting, plan: Plan, secret: str
) -> Iterator[tuple[Job, Record]]:
    """Grade the jobs on this machine or on a cluster, without writing records.

    Answers that a busy machine may have failed are tried again when all other jobs are done.
    """
    if setting.scheduler:
        yield from grade_on_cluster(jobs, setting.scheduler, plan, secret)
        return
    uncertain: list[_Task] = []
    for job, graded in _run_tasks([(job, None) for job in jobs], setting, plan, secret):
        if graded.uncertain:
            uncertain.append((job, graded))
        else:
            yield job, graded.record
    for job, graded in _run_tasks(uncertain, replace(setting, jobs=1), plan, secret):
        yield job, graded.record


def _run_tasks(
    tasks: Sequence[_Task], setting: Setting, plan: Plan, secret: str
) -> Iterator[tuple[Job, Graded]]:
    """Run all tasks. If a process of the pool dies, rerun one by one the tasks that may have killed it."""
    left = list(tasks)
    while left:
        done = set()
        for job, graded in _run_until_broken(left, setting, plan, secret):
            done.add(job)
            yield job, graded
        left = [task for task in left if task[0] not in done]
        # Either no tasks are left, or a process died while grading one of the running jobs.
        most = _process_count(setting) + 1
        suspects, left = left[:most], left[most:]
        for task in suspects:
            alone = next(_run_until_broken([task], setting, plan, secret), None)
            why = "The process that graded it died."
            yield alone or (task[0], Graded(_fault_record(task[0], plan.level, why)))


def find_differences(
    jobs: Sequence[Job], setting: Setting, plan: Plan, secret: str
) -> Iterator[str]:
    """Grade the jobs again without the cache. Yield a line for each difference."""
    before = {(record.learner, record.file): record for record in read_records(setting.out)}
    for _, record in grade_jobs(jobs, setting, plan, secret):
        for line in _compare_records(before.get((record.learner, record.file)), record):
            yield f"Differs: {record.learner}, {record.file}: {line}"


def _compare_records(old: Record | None, new: Record) -> Iterator[str]:
    """Yield the differences in outcome or points between two records of one submission."""
    if old is None:
        yield "was not graded before"
        return
    if old.status is not new.status:
        yield f"{old.status.value} before, {new.status.value} now"
    now = {exercise.name: exercise for exercise in new.exercises}
    for exercise in old.exercises:
        other = now.get(exercise.name)
        if other is None:
            yield f"{exercise.name} is missing now"
        elif (exercise.outcome, exercise.points) != (other.outcome, other.points):
            yield (
                f"{exercise.name}: {exercise.outcome}, {exercise.points:g} points before; "
                f"{other.outcome}, {other.points:g} now"
            )


def _run_until_broken(
    tasks: Sequence[_Task], setting: Setting, plan: Plan, secret: str
) -> Iterator[tuple[Job, Graded]]:
    """Yield results until all tasks are done or a process has died."""
    with _pool(len(tasks), setting, plan, secret) as pool, suppress(BrokenProcessPool):
        try:
            waiting = {pool.submit(_run_task, *task): task[0] for task in tasks}
            while waiting:
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    yield _result_of_future(waiting.pop(future), future, plan.level)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            # An interrupted batch does not wait for running answers. All processes started by a grader end
            # with it.
            for process in multiprocessing.active_children():
                process.kill()
            raise


def _result_of_future(job: Job, future: Future[Graded], level: str) -> tuple[Job, Graded]:
    try:
        return job, future.result()
    except (BrokenProcessPool, CannotWrite):  # these errors end the whole batch
        raise
    except Exception as error:  # an error in the grader: continue the batch
        return job, Graded(_fault_record(job, level, f"The grader failed: {error!r}."))


def _pool(jobs: int, setting: Setting, plan: Plan, secret: str) -> ProcessPoolExecutor:
    # A forked process shares the imported torch, and forking is safe if no other thread runs.
    alone = sys.platform == "linux" and threading.active_count() == 1
    context = multiprocessing.get_context("fork" if alone else "spawn")
    # If root grades, each grader's sandboxes have a separate user, selected by this number. Its start differs
    # between batches, so that two simultaneous batches rarely share a user.
    counter = context.Value("i", os.getpid() * 7 % 3000)
    processes = min(_process_count(setting), jobs)
    initargs = (setting, plan, secret, counter)
    return ProcessPoolExecutor(processes, context, initializer=_set_up_process, initargs=initargs)


def _process_count(setting: Setting) -> int:
    # Use two for each core, because starting scripts, hanging answers and worlds with a late rank leave cores
    # idle. No right answer fails for this reason, because budgets limit processor time.
    return setting.jobs or 2 * (os.cpu_count() or 1)


def _set_up_process(setting: Setting, plan: Plan, secret: str, counter: Any) -> None:
    """Set up this process as a grader that ends with its parent."""
    global _grader
    # Ctrl-C is handled by the batch, which then ends this process
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_exit_with_parent, args=(parent,), daemon=True).start()
    with counter.get_lock():
        counter.value += 1
        slot = counter.value
    plan.begin()
    versions = current_versions(plan.level, secret)
    # --verify runs everything again and must not change existing results.
    cache = Cache(None if setting.verify else setting.out / "cache", setting.again)
    pictures = "none" if setting.verify else setting.pictures
    references = References(solutions_folder(), plan, slot)
    _grader = Grader(plan, secret, cache, versions, references, slot, pictures, _print_line)


def _print_line(line: str) -> None:
    """Print a line in one write, so that lines of several graders never mix."""
    sys.stderr.write(f"{for_log(one_line(line, _MAX_LINE_CHARS))}\n")
    sys.stderr.flush()


def _exit_with_parent(parent: Any) -> None:
    # Otherwise the graders and sandboxes of a killed batch would wait forever.
    parent.join()
    os._exit(1)


def _run_task(job: Job, first_try: Graded | None) -> Graded:
    return _grader.try_once(job) if first_try is None else _grader.settle(job, first_try)


def _fault_record(job: Job, level: str, why: str) -> Record:
    return Record(
        job.learner,
        job.file,
        "",
        Status.HARNESS_FAULT,
        message=f"{why[:500]} No points are lost: grade this file again, "
        "or on a different machine.",
        protection=protection_here(level),
    )


# --- files of the results -------------------------------------------------------------------------


def _stored_record(job: Job, path: Path, versions: Mapping[str, str]) -> Record | None:
    """Return the record of an earlier run if nothing has changed since."""
    with suppress(OSError, ValueError, UnreadableNotebook):
        record = from_json(json.loads(path.read_text(encoding="utf-8")))
        same = record.status is Status.GRADED and record.versions == versions
        same = same and not any(exercise.was_too_slow for exercise in record.exercises)
        if same and record.sha256 == hashlib.sha256(read_bytes(job.path)).hexdigest():
            return record
    return None


def _log(out: Path, job: Job, record: Record, path: Path) -> None:
    """Append a line to the run log in one write, so that lines never mix."""
    line = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "learner": job.learner,
        "file": job.file,
        "record": path.name,
        "status": record.status.value,
        "points": round(record.points, 4),
        "out_of": record.out_of,
        "seconds": record.seconds,
    }
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    text = (json.dumps(line) + "\n").encode()
    # With O_APPEND, lines of two batches never mix. O_NOFOLLOW is used because other users may be able to
    # write to `out`.
    with reporting_write_errors(out / "log.jsonl"):
        fd = os.open(out / "log.jsonl", flags, 0o644)
        try:
            if os.write(fd, text) < len(text):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(fd)


def read_or_create_secret(out: Path) -> str:
    """Return the secret of this batch's hidden cases. Create the secret if it does not exist."""
    path = out / "secret"
    with suppress(FileNotFoundError):
        if secret := path.read_text(encoding="utf-8").strip():
            return secret
    secret = secrets.token_hex(16)
    write_atomically(path, f"{secret}\n".encode())  # mkstemp makes it readable only by this user
    return secret
