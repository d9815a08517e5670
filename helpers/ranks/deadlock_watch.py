"""Detect, from outside and while it runs, whether a world is deadlocked.

    each look:  the kernel's state of every thread ──> can one continue? ──yes──> reset, look again later
                                                          │ no
                ask each rank where it is, look again:    │
                has any thread run since? ────────yes─────┘ start again
                          │ no
                do the records prove a deadlock? ──yes──> Diagnosis
                          │ no
                has it lasted a while, although gloo's own threads got the processor? ──> Diagnosis

If no thread has run between two looks, there was a moment at which all threads were waiting. So no message
can have passed between ranks meanwhile, however slow or busy the machine is. A rank that computes, sleeps,
reads, is stopped, or waits for one of its child processes can continue. In this case there is no diagnosis,
however long it takes, and the launch's budget decides. The same holds for a loop that polls a flag or
`is_completed()`, which may end after some time, and for `accept`, because any process may connect. If the
budget runs out, a RankTimeout lists the ranks' lines.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from helpers.ranks.budget import MAX_BUDGET_FACTOR
from helpers.ranks.process_snapshot import LocalSnapshot, RankSnapshot, WorldSnapshot
from helpers.ranks.status import SHORT_TIMEOUT_S, Status
from helpers.ranks.threads import (
    FOREVER,
    GLOO_LOOP,
    RPC_LOOP,
    Thread,
    holders_of_open_files,
    read_threads,
)
from helpers.ranks.worker import CHANNEL_FD
from helpers.ranks.world import Member, World
from helpers.trace.diagnosis import diagnose, diagnose_timeout
from helpers.trace.events import Diagnosis, OtherWait
from helpers.trace.rank_state import RankState
from helpers.trace.waits import can_complete

LOOK_INTERVAL_S = 0.1
# The pause before the next look while no rank seems able to continue.
SHORT_INTERVAL_S = 0.02
# Time without progress after which a deadlock is reported if the records do not prove it, for example because
# a rank polls a store, both ends of a transfer were recorded, or nothing is recorded.
MIN_STILL_S = 0.6
# The same time if the kernel hides the system calls in which ranks wait, as in a grader's sandbox.
MIN_STILL_HIDDEN_S = 5.0
# Number of checks that each thread of `_POLLING_THREADS` must have run in that time. gloo's thread checks its
# connections every 10 ms, and RPC's thread more than once in each ms of its running time. If the machine is
# too busy for this number, a deadlock is not certain. It is also the number of looks that must have found
# gloo's thread busy.
_MIN_LOOKS = 10
# Time spent on reading messages from ranks before checking again whether all hosts have answered.
_POLL_INTERVAL_S = 0.005
# Time within which a rank must report its position. If a call in C++ prevents the report, the rank is
# judged without it.
_ANSWER_TIMEOUT_S = 1.0

# Threads that repeatedly check whether a message has arrived.
_POLLING_THREADS = frozenset({GLOO_LOOP, RPC_LOOP})
# Name prefixes of torch's threads that wait for data from other ranks.
_TORCH_THREADS = ("gloo_", "pt_", "TP_")
# Threads that occasionally check their GPUs, as long as the process runs.
_GPU_THREADS = ("pt_nccl", "cuda")
_TORCH_WAIT_CALLS = frozenset({"futex", "poll", "ppoll", "epoll_wait", "epoll_pwait"})
_SLEEP_CALLS = frozenset({"nanosleep", "clock_nanosleep"})
# A shorter wait in a rendezvous may be a look-up of a machine's name, which a slow DNS server may still
# answer: the C library asks each server for up to 30 s.
_DNS_TIMEOUT_S = 60.0
# Maximum number of consecutive looks that find a polling main thread sending its request instead of sleeping.
_MAX_SKIPPED = 5
_STORE_THREAD = "pt_tcpstore"
_NOT_STARTED = "not started yet, because the modules that it needs are still being imported"
# Number of attempts to find a main thread asleep if it repeatedly tries to lock a file.
_SLEEP_LOOKS = 5


@dataclass(frozen=True)
class _ThreadActivity:
    """The threads' activity at one look: the number of times that each thread had given up the processor.

    switch_counts: these numbers for the threads that must not have run since the first look. polling_counts:
    these numbers for `_POLLING_THREADS` and for main threads polling a store. Such threads must have run
    since the first look, and their activity must be unchanged.
    """

    time_s: float
    switch_counts: dict[tuple[int, int], int]
    polling_counts: dict[tuple[int, int], int]
    change_count: int


@dataclass
class DeadlockDetector:
    """Inspects a world repeatedly, and diagnoses deadlocks.

    budget_s: the world's budget. A wait in torch with a later deadline counts as endless.
    """

    world: World
    budget_s: float
    # Seconds until the next look.
    next_look_s: float = LOOK_INTERVAL_S
    _first_activity: _ThreadActivity | None = None
    # Number of looks that have found gloo's threads busy, and the connections' queues at the latest of these
    # looks.
    _queues: tuple[int, dict[int, tuple[int, int]]] = (0, {})
    _asked_at: float | None = None
    _pause_count: int = 0
    _skipped_count: int = 0
    # The rank that could continue at the last look.
    _running_rank: int = 0
    # The state of the ranks' processes at the current look.
    _snapshot: WorldSnapshot = LocalSnapshot({}, 0)

    def diagnose_now(self, now: float) -> Diagnosis | None:
        """Return the diagnosis of a deadlocked world, or None. now: in seconds, from any steady clock."""
        self.next_look_s = LOOK_INTERVAL_S
        running = [member for member in self.world.members if not member.is_done]
        if sys.platform != "linux" or not running or not all(member.pid for member in running):
            return None
        pids = {member.rank: member.pid for member in self.world.members}
        # While waiting for other hosts to answer, read their ranks' messages, which may arrive before the
        # answers.
        self._snapshot = self.world.connection.inspect_ranks(
            self.world.launch,
            pids,
            self._asked_at is None,
            lambda: self.world.poll(_POLL_INTERVAL_S),
        )
        if any(member.is_done for member in running):
            return None
        threads: dict[int, Sequence[Thread]] = {}
        # Most worlds compute. One running rank shows this, so begin with the rank that ran at the last look,
        # and do not read the other ranks' threads.
        for member in sorted(running, key=lambda member: member.rank != self._running_rank):
            threads[member.rank] = self._rank_snapshot(member).threads
            if not self._polls_file(member) and not self._may_be_blocked(
                member, threads[member.rank]
            ):
                self._running_rank = member.rank
                self._reset()
                return None
        if self._is_reading_store_file(running, threads):
            self.next_look_s = SHORT_INTERVAL_S
            return None
        if not all(self._may_be_blocked(member, threads[member.rank]) for member in running):
            self._reset()
            return None
        self.next_look_s = SHORT_INTERVAL_S
        if self._asked_at is None:
            self._asked_at = now
            self.world.ask_status()
            return None
        if not self.world.all_answered() and now - self._asked_at < _ANSWER_TIMEOUT_S:
            return None
        self.world.read_logs()
        are_stuck = all(self._is_stuck(member, threads[member.rank]) for member in running)
        if (
            not are_stuck
            or self._is_store_serving()
            or self._snapshot.orphan_may_act
            or self._waits_for_outside_store(running)
        ):
            self.next_look_s = LOOK_INTERVAL_S
            self._reset()
            return None
        activity = self._measure_activity(running, threads, now)
        if self._is_sending_request(activity):
            return None
        first, self._first_activity = self._first_activity, self._first_activity or activity
        if (
            first is None
            or _has_changed(first, activity)
            or self._have_queues_changed(running, threads)
        ):
            self._first_activity, self._queues = activity, (0, {})
            return None
        return self._diagnose_if_certain(running, threads, activity)

    def _is_reading_store_file(
        self, running: list[Member], threads: Mapping[int, Sequence[Thread]]
    ) -> bool:
        """Return whether a rank polling a file is just reading it, so that this look shows nothing.

        The number of such looks is limited, because a rank that has found its key continues with
        something else.
        """
        is_reading = any(
            self._polls_file(member) and rank_threads[0].call not in _SLEEP_CALLS
            for member in running
            if (rank_threads := threads[member.rank])
        )
        self._skipped_count = (
            self._skipped_count + 1 if is_reading and self._first_activity is not None else 0
        )
        return 0 < self._skipped_count <= _MAX_SKIPPED

    def _polls_file(self, member: Member) -> bool:
        """Return whether a rank waits for keys of a store that is a file, or may do so in a rendezvous.

        A rank's report of a rendezvous only counts until another rank has been seen running.
        """
        keys = member.status.keys
        if keys is not None:
            return not keys.port
        return bool(member.status.meets) and self._first_activity is not None

    def _may_be_blocked(self, member: Member, threads: Sequence[Thread]) -> bool:
        """Return whether a rank may be unable to continue by itself, judged without asking it.

        A thread that the rank has already reported as idle is allowed to run: on a busy machine, a heartbeat
        thread spends more time queued for a core than asleep, so it would hide every deadlock.
        """
        if not threads:  # it is ending
            return False
        main_thread = threads[0]
        is_waiting = (
            main_thread.call in {"?", "read", "flock"}
            or main_thread.call in _SLEEP_CALLS
            or main_thread.call in _TORCH_WAIT_CALLS
        )
        return is_waiting and all(
            thread.state == "S" or _is_idle_poller(thread) or self._is_idle(member, thread)
            for thread in threads
        )

    def _diagnose_if_certain(
        self,
        running: list[Member],
        threads: Mapping[int, Sequence[Thread]],
        activity: _ThreadActivity,
    ) -> Diagnosis | None:
        """Return the diagnosis of a world without a running thread between two looks, if it is certain."""
        assert self._first_activity is not None
        still_s = activity.time_s - self._first_activity.time_s
        all_threads = [thread for rank_threads in threads.values() for thread in rank_threads]
        if still_s < MIN_STILL_HIDDEN_S and any(thread.call == "?" for thread in all_threads):
            return None
        have_polled = all(
            activity.polling_counts[thread] - self._first_activity.polling_counts[thread]
            >= _MIN_LOOKS
            for thread in activity.polling_counts
        )
        # Gloo's thread works on a message, or it loops without moving a byte because a transfer was
        # destroyed together with its unreferenced Work.
        moves_nothing = self._queues[0] >= _MIN_LOOKS
        are_asleep = all(
            thread.state == "S" or thread.name in _POLLING_THREADS - {GLOO_LOOP}
            for thread in all_threads
        )
        is_still_long_enough = (
            still_s >= MIN_STILL_S and have_polled and (are_asleep or moves_nothing)
        )
        if not is_still_long_enough and not self._is_proven(running):
            return None
        states = self.states()
        trace = self.world.collector.trace_for_diagnosis()  # this is slow for a long trace
        if not is_still_long_enough and can_complete(states, trace):
            return None
        # The ranks' reports are older than the last look. Ask again, to find out whether a rank has answered
        # or continued since then.
        reports = [_stable_report(member) for member in running]
        self.world.ask_status_and_wait(_ANSWER_TIMEOUT_S)
        self.world.read_logs()
        reports_now = [_stable_report(member) for member in running]
        has_changed = self.world.collector.change_count != activity.change_count or any(
            member.is_done for member in running
        )
        if has_changed or reports != reports_now:
            self._reset()
            return None
        return diagnose(states, trace)

    def _have_queues_changed(
        self, running: list[Member], threads: Mapping[int, Sequence[Thread]]
    ) -> bool:
        """Return whether the connections' queues have changed while gloo's threads are busy."""
        gloo_threads = [
            thread
            for rank_threads in threads.values()
            for thread in rank_threads
            if thread.name == GLOO_LOOP
        ]
        if all(thread.state == "S" for thread in gloo_threads):
            return False
        current: dict[int, tuple[int, int]] = {}
        for member in running:
            queues = self._rank_snapshot(member).queues
            if queues is None:
                self._queues = (0, {})
                return False
            current |= queues
        looks, before = self._queues
        self._queues = looks + 1, current
        return looks > 0 and before != current

    def _is_sending_request(self, activity: _ThreadActivity) -> bool:
        """Return whether a polling main thread is making its next request.

        If the thread stays in the request, it is blocked. A thread that slept between two attempts to
        connect, and is now connected, looks the same.
        """
        has_left_sleep = (
            self._first_activity is not None
            and not self._first_activity.polling_counts.keys().isdisjoint(activity.switch_counts)
        )
        self._pause_count = self._pause_count + 1 if has_left_sleep else 0
        return 0 < self._pause_count <= _MAX_SKIPPED

    def _reset(self) -> None:
        self._first_activity = self._asked_at = None
        self._queues, self._pause_count = (0, {}), 0

    def _measure_activity(
        self, running: list[Member], threads: Mapping[int, Sequence[Thread]], now: float
    ) -> _ThreadActivity:
        switch_counts, polling_counts = {}, {}
        for member in running:
            for thread in threads[member.rank]:
                key = (member.rank, thread.id)
                is_polling = thread.id == member.pid and thread.call in _SLEEP_CALLS
                if thread.name in _POLLING_THREADS or is_polling:
                    polling_counts[key] = (
                        thread.ran_ms if thread.name == RPC_LOOP else thread.switches
                    )
                elif thread.id == member.pid or not self._helps_no_rank(member, thread):
                    switch_counts[key] = thread.switches
        return _ThreadActivity(
            now, switch_counts, polling_counts, self.world.collector.change_count
        )

    def _helps_no_rank(self, member: Member, thread: Thread) -> bool:
        """Return whether a thread helps no rank even if it runs: it listens, polls, or is idle."""
        if thread.id == member.pid:
            is_polling = thread.call in _SLEEP_CALLS or thread.ends_in_s > _DNS_TIMEOUT_S
            return bool(member.status.meets) and is_polling and self.budget_s <= SHORT_TIMEOUT_S
        is_listening = thread.fd == CHANNEL_FD or self._is_idle(member, thread)
        return is_listening or thread.name.startswith((_STORE_THREAD, *_GPU_THREADS))

    def _is_idle(self, member: Member, thread: Thread) -> bool:
        """Return whether no rank can be waiting for a thread, according to the report of its rank."""
        if thread.inner in member.status.idle:
            return True
        # If a rank waits for anything outside torch, such as a file lock, any thread may end that wait.
        is_quiet = member.status.quiet is not None and thread.inner in member.status.quiet
        return is_quiet and all(
            other.is_done or (other.status.quiet is not None and self._is_in_call(other))
            for other in self.world.members
        )

    def _is_in_call(self, member: Member) -> bool:
        """Return whether the main thread waits in a communication call, which only other ranks can end."""
        collector = self.world.collector
        return collector.blocking_call(member.rank) is not None or (
            member.status.inside in {"backward", "grad"}
            and bool(collector.unfinished_calls(member.rank))
        )

    def _is_proven(self, running: list[Member]) -> bool:
        """Return whether the records show the cause of each rank's wait."""
        collector, logs = self.world.collector, self.world.logs
        if collector.dropped or any(logs.lost_count(member.rank) for member in running):
            return False  # The matching call may be among the missing records.
        return all(
            self._is_in_call(member) or self._lacks_ranks(member, running) for member in running
        )

    def _lacks_ranks(self, member: Member, running: list[Member]) -> bool:
        """Return whether a rank is in a rendezvous that some of the needed ranks cannot join."""
        present = {other.rank for other in running if other.status.meets == member.status.meets}
        needed = member.status.needs or range(self.world.options.world_size)
        return bool(member.status.meets) and not present.issuperset(needed)

    def _is_stuck(self, member: Member, threads: Sequence[Thread]) -> bool:
        """Return whether no thread of a rank can continue unless another rank acts."""
        ends_by_itself = (
            member.status.keys is not None and member.status.keys.ends_in_s <= self.budget_s
        )
        snapshot = self._rank_snapshot(member)
        if member.status.alarm or ends_by_itself or snapshot.children_may_act or snapshot.in_flight:
            return False
        return all(self._is_waiting(member, thread) for thread in threads)

    def _is_store_serving(self) -> bool:
        """Return whether a finished rank's store still has to answer requests of other ranks.

        Ranks leave a rendezvous one after another. Rank 0 may return before its store's thread has released
        the last rank, and on a busy machine it may return long before.
        """
        return any(
            thread.name.startswith(_STORE_THREAD) and not self._is_waiting(member, thread)
            for member in self.world.members
            if member.is_done and member.exitcode is None
            for thread in self._rank_snapshot(member).threads
        )

    def _waits_for_outside_store(self, running: list[Member]) -> bool:
        """Return whether a rank waits for a key in an external store, which other programs may set."""
        ports = {
            member.status.keys.port
            for member in running
            if member.status.keys is not None and member.status.keys.port
        }
        if not ports:
            return False
        snapshots = [
            self._rank_snapshot(member) for member in self.world.members if member.exitcode is None
        ]
        return not ports <= frozenset().union(*(rank_snapshot.ports for rank_snapshot in snapshots))

    def _rank_snapshot(self, member: Member) -> RankSnapshot:
        return self._snapshot.ranks[member.rank]

    def _is_waiting(self, member: Member, thread: Thread) -> bool:
        """Return whether a thread waits for other ranks, or for threads that wait for them."""
        is_main = thread.id == member.pid
        if thread.name.startswith(_STORE_THREAD) and thread.call != "?":
            # The store's thread runs when a rank asks it. It may also be looking up a client's name while all
            # other threads seem to wait. With a slow DNS this takes a second.
            return thread.call.startswith("epoll") and thread.ends_in_s == FOREVER
        if thread.name in _POLLING_THREADS or self._helps_no_rank(member, thread):
            return True
        if thread.call == "?":  # The call is hidden, so rely on the rank's report.
            return not is_main or self._in_torch(member)
        # The wait cannot end before the launch does.
        lasts_until_end = thread.ends_in_s > self.budget_s * MAX_BUDGET_FACTOR
        if thread.call == "futex" and thread.private and lasts_until_end:
            return True  # It waits for a different thread of the same process.
        if thread.call == "flock":
            return bool(self._lock_holders(member))
        if thread.call == "read" and thread.private:
            # A data loader's worker answers through such a pipe, but is not counted as able to act.
            return not self._rank_snapshot(member).has_children
        if is_main and member.status.asleep and thread.call.startswith("epoll"):
            return thread.ends_in_s == FOREVER
        is_torch = thread.name.startswith(_TORCH_THREADS) or (is_main and self._in_torch(member))
        if (
            not is_torch
            or thread.call not in _TORCH_WAIT_CALLS
            or thread.ends_in_s <= self.budget_s
        ):
            return False
        # A main thread in torch's code may wait for a child process, such as a data loader's worker.
        return thread.private or not is_main or not self._rank_snapshot(member).has_children

    def _lock_holders(self, member: Member) -> tuple[int, ...]:
        """Return the holders of the file locks that a rank waits for.

        Return no rank if a different program may release the lock, or if a child process may do so because it
        shares the open file of the rank that forked it.
        """
        pids = {other.pid: other for other in self.world.members if not other.is_done}
        holders = self._rank_snapshot(member).lock_holders
        if not holders <= pids.keys() or any(
            self._rank_snapshot(pids[pid]).has_children for pid in holders
        ):
            return ()
        return tuple(sorted(pids[pid].rank for pid in holders))

    def polled_lockers(self, rank: int) -> tuple[int, ...]:
        """Return the holders of a file lock that a rank seems to poll, sleeping between its attempts.

        A sleeping library passes a duration to the kernel, while `time.sleep` passes a point in time.
        """
        member, snapshot = self.world.members[rank], self._snapshot.ranks.get(rank)
        if member.is_done or self.world.hosts or snapshot is None or member.status.inside:
            return ()
        if not any(_is_main_asleep(member.pid) for _ in range(_SLEEP_LOOKS)):
            return ()
        ranks = {other.pid: other.rank for other in self.world.members if not other.is_done}
        holders = holders_of_open_files(member.pid)
        return tuple(sorted(ranks[pid] for pid in holders & ranks.keys()))

    def _in_torch(self, member: Member) -> bool:
        """Return whether the main thread is in torch's code, according to its report or else its record."""
        if member.answer_count >= member.ask_count:
            return bool(member.status.inside)
        return self.world.collector.blocking_call(member.rank) is not None

    def states(self) -> list[RankState]:
        """Return the known state of each rank, for the diagnosis or for the reader of a live view."""
        return [self._rank_state(member, member.status) for member in self.world.members]

    def _rank_state(self, member: Member, report: Status) -> RankState:
        collector = self.world.collector
        snapshot = self._snapshot.ranks.get(member.rank)  # This is None before the first look.
        waits_for_lock = snapshot is not None and any(
            thread.call == "flock" for thread in snapshot.threads
        )
        return RankState(
            member.rank,
            member.state,
            collector.blocking_call(member.rank) if not member.is_done else None,
            collector.unfinished_calls(member.rank),
            report.inside,
            str(collector.place(report.at)) if report.at else "",
            report.keys.keys if report.keys is not None else (),
            report.needs,
            report.named,
            self._lock_holders(member) if waits_for_lock and not member.is_done else (),
            tuple((name, str(collector.place(at))) for name, at in report.others),
            f"{report.child.who} calls {report.child.call} ({collector.place(report.child.at)})"
            if report.child is not None
            else "",
            report.joins if not member.is_done else None,
            report.meets,
            report.handling,
        )


def _is_main_asleep(pid: int) -> bool:
    """Return whether the main thread is in a library's sleep. Before returning False, pause briefly."""
    is_asleep = any(t.id == pid and t.call in _SLEEP_CALLS for t in read_threads(pid))
    if not is_asleep:
        time.sleep(SHORT_INTERVAL_S)
    return is_asleep


def current_waits(detector: DeadlockDetector) -> Diagnosis:
    """Describe each rank's current activity, deadlocked or not."""
    # If the answers arrive too late for this call, the next call uses them.
    detector.world.ask_status()
    detector.world.poll(0.0)
    detector.world.read_logs()
    diagnosis = diagnose(detector.states(), detector.world.collector.trace_for_diagnosis())
    waits = tuple(
        wait if detector.world.members[wait.rank].pid else OtherWait(wait.rank, _NOT_STARTED)
        for wait in diagnosis.waits
    )
    return replace(diagnosis, waits=waits)


def explain_timeout(detector: DeadlockDetector) -> Diagnosis | None:
    """Return the reason why more time would not have helped these ranks, if any."""
    states = [
        replace(state, lockers=detector.polled_lockers(state.rank)) if not state.lockers else state
        for state in detector.states()
    ]
    return diagnose_timeout(states, detector.world.collector.trace_for_diagnosis())


def _stable_report(member: Member) -> tuple[object, ...]:
    """Return the part of a rank's report that stays the same while the rank waits."""
    report = member.status
    number = report.keys.number if report.keys is not None else 0
    return (
        report.at,
        report.inside,
        report.meets,
        number,
        member.answer_count >= member.ask_count,
    )


def _has_changed(earlier: _ThreadActivity, later: _ThreadActivity) -> bool:
    """Return whether, between two looks, a record has arrived, or a thread has run, begun or ended."""
    is_same = (
        later.change_count == earlier.change_count
        and later.switch_counts == earlier.switch_counts
        and later.polling_counts.keys() == earlier.polling_counts.keys()
    )
    return not is_same


def _is_idle_poller(thread: Thread) -> bool:
    """Return whether a thread wakes only occasionally, to check whether there is work for it."""
    return thread.name in _POLLING_THREADS or thread.name.startswith(_GPU_THREADS)
