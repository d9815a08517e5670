"""Detect, from outside and while it runs, whether a world is deadlocked.

    each look:  the kernel's state of every thread ──> can one continue? ──yes──> reset, look again later
                                                          │ no
                ask each rank where it is, look again:    │
                has any thread run since? ────────yes─────┘ start again
                          │ no
                do the records prove a deadlock? ──yes──> Diagnosis
                          │ no
                has it lasted a while, although gloo's own threads got the processor? ──> Diagnosis

If no thread has run between two looks, there was a moment at which all of them waited. So no message can have
passed between ranks meanwhile, however slow or busy the machine is. A rank that computes, sleeps, reads, is
stopped, or waits for a process of its own can continue. Then there is no diagnosis, however long it takes,
and the launch's budget decides. The same holds for a loop that polls a flag or `is_completed()`, which may
end after some time, and for `accept`, because any process may connect: a RankTimeout then names their lines.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from helpers.ranks.budget import BACKSTOP
from helpers.ranks.process_snapshot import HereView, OneRank, View
from helpers.ranks.status import SOON_S, Status
from helpers.ranks.threads import FOREVER, GLOO_LOOP, RPC_LOOP, Thread
from helpers.ranks.worker import CHANNEL_FD
from helpers.ranks.world import Member, World
from helpers.trace.diagnosis import RankState, can_complete, diagnose
from helpers.trace.events import Diagnosis

LOOK_S = 0.1
# The pause before the next look while no rank seems able to continue.
LOOK_AGAIN_S = 0.02
# How long nothing must have moved if the records do not prove a deadlock, for example because a rank
# polls a store, both ends of a transfer were recorded, or nothing is recorded.
STUCK_UNPROVEN_S = 0.6
# The same if the kernel hides the system calls in which ranks wait, as in a grader's sandbox.
HIDDEN_S = 5.0
# How often each thread of `_LOOPS` must have checked its connections in that time. gloo's thread does so
# every 10 ms, and RPC's more than once in each ms that it runs. If the machine is too busy for that, a
# deadlock is not certain. Also the number of looks that must have found gloo's thread busy.
_LOOKS = 10
# How long to read messages from ranks before checking again whether all hosts have answered.
_POLL_S = 0.005
# How long a rank has to report where it is. If a call in C++ prevents the report, the rank is judged
# without it.
_ANSWER_S = 1.0

# Threads that check again and again whether a message has arrived.
_LOOPS = frozenset({GLOO_LOOP, RPC_LOOP})
# Prefixes of the names of torch's own threads. They wait for data from other ranks.
_TORCHS = ("gloo_", "pt_", "TP_")
# Such threads check their GPUs now and then, as long as the process lives.
_GPUS = ("pt_nccl", "cuda")
_WAITS_OF_TORCH = frozenset({"futex", "poll", "ppoll", "epoll_wait", "epoll_pwait"})
_POLLS = frozenset({"nanosleep", "clock_nanosleep"})
# A wait in a rendezvous that ends sooner may be a look-up of a machine's name, which a slow DNS will still
# answer: the C library asks each server for up to 30 s.
_NAME_S = 60.0
# In how many consecutive looks a main thread that polls may be found making its request instead of
# sleeping.
_PAUSES = 5
_STORE = "pt_tcpstore"


@dataclass(frozen=True)
class _Snapshot:
    """What one look has seen: how often each thread had given up the processor.

    switches: for the threads that must not have run since the first look. loops: for `_LOOPS` and for
    main threads that poll a store, which must have run since the first look, and must still do the same.
    """

    at: float
    switches: dict[tuple[int, int], int]
    loops: dict[tuple[int, int], int]
    changes: int


@dataclass
class DeadlockDetector:
    """Looks at a world repeatedly, and diagnoses a deadlock.

    budget_s: how long the world may take. A wait of torch with a later deadline counts as endless.
    """

    world: World
    budget_s: float
    # After how many seconds to look again.
    next_s: float = LOOK_S
    _first: _Snapshot | None = None
    # How many looks have found gloo's threads busy, and what was in the connections' queues at the last
    # one.
    _queues: tuple[int, dict[int, tuple[int, int]]] = (0, {})
    _asked: float | None = None
    _pauses: int = 0
    _skipped: int = 0
    # What the system shows in the current look.
    _view: View = HereView({}, 0)

    def look(self, now: float) -> Diagnosis | None:
        """Return the diagnosis of a deadlocked world, or None. now: in seconds, from any steady clock."""
        self.next_s = LOOK_S
        live = [member for member in self.world.members if not member.done]
        if sys.platform != "linux" or not live or not all(member.pid for member in live):
            return None
        pids = {member.rank: member.pid for member in self.world.members}
        # While other hosts answer, read what their ranks send, because it may come before the answer.
        self._view = self.world.connection.view(
            self.world.launch, pids, self._asked is None, lambda: self.world.poll(_POLL_S)
        )
        if any(member.done for member in live):
            return None
        threads = {member.rank: self._shown(member).threads for member in live}
        if self._looks_for_its_key(live, threads):
            self.next_s = LOOK_AGAIN_S
            return None
        if not all(threads[m.rank] and self._may_wait(m, threads[m.rank]) for m in live):
            self._forget()
            return None
        self.next_s = LOOK_AGAIN_S
        if self._asked is None:
            self._asked = now
            self.world.ask()
            return None
        if not self.world.all_answered() and now - self._asked < _ANSWER_S:
            return None
        self.world.read_logs()
        stuck = all(self._is_stuck(member, threads[member.rank]) for member in live)
        if (
            not stuck
            or self._store_serves()
            or self._view.left_may_act
            or self._others_may_set(live)
        ):
            self.next_s = LOOK_S
            self._forget()
            return None
        look = self._seen(live, threads, now)
        if self._pausing(look):
            return None
        first, self._first = self._first, self._first or look
        if first is None or _moved(first, look) or self._bytes_move(live, threads):
            self._first, self._queues = look, (0, {})
            return None
        return self._judge(live, threads, look)

    def _looks_for_its_key(
        self, live: list[Member], threads: Mapping[int, Sequence[Thread]]
    ) -> bool:
        """Return whether a rank that polls a file for a key is reading it, and this look shows nothing.

        The number of such looks is limited, because a rank that has found its key continues with
        something else.
        """
        found = any(
            member.status.keys is not None
            and not member.status.keys.port
            and some[0].call not in _POLLS
            for member in live
            if (some := threads[member.rank])
        )
        self._skipped = self._skipped + 1 if found and self._first is not None else 0
        return 0 < self._skipped <= _PAUSES

    def _may_wait(self, member: Member, threads: Sequence[Thread]) -> bool:
        """Return whether a rank may be unable to continue by itself, judged without asking it.

        A thread that it has already reported as idle may be running: on a busy machine a heartbeat spends
        more time queued for a core than asleep, and would hide every deadlock.
        """
        main = threads[0]
        waits = (
            main.call in {"?", "read", "flock"}
            or main.call in _POLLS
            or main.call in _WAITS_OF_TORCH
        )
        return waits and all(
            thread.state == "S" or _polls_idly(thread) or thread.inner in member.status.idle
            for thread in threads
        )

    def _judge(
        self, live: list[Member], threads: Mapping[int, Sequence[Thread]], look: _Snapshot
    ) -> Diagnosis | None:
        """Return the diagnosis of a world of which no thread has run between two looks, if it is certain."""
        assert self._first is not None
        lasted = look.at - self._first.at
        every = [thread for some in threads.values() for thread in some]
        if lasted < HIDDEN_S and any(thread.call == "?" for thread in every):
            return None
        looked = all(look.loops[t] - self._first.loops[t] >= _LOOKS for t in look.loops)
        # Gloo's thread works on a message, or it loops without moving a byte because a Work without a
        # reference has taken its transfer along.
        in_vain = self._queues[0] >= _LOOKS
        asleep = all(t.state == "S" or t.name in _LOOPS - {GLOO_LOOP} for t in every)
        unproven = lasted >= STUCK_UNPROVEN_S and looked and (asleep or in_vain)
        if not unproven and not self._is_proven(live):
            return None
        states, trace = self.states(), self.world.collector.known()  # slow for a long trace
        if not unproven and can_complete(states, trace):
            return None
        # The ranks' reports are older than the last look, so ask again: has a rank answered or continued
        # since?
        said = [_said(member) for member in live]
        self.world.ask_and_wait(_ANSWER_S)
        self.world.read_logs()
        again = [_said(member) for member in live]
        moved = self.world.collector.changes != look.changes or any(m.done for m in live)
        if moved or said != again:
            self._forget()
            return None
        return diagnose(states, trace)

    def _bytes_move(self, live: list[Member], threads: Mapping[int, Sequence[Thread]]) -> bool:
        """Return whether, while gloo's threads are busy, the connections' queues have changed."""
        busy = [t for some in threads.values() for t in some if t.name == GLOO_LOOP]
        if all(thread.state == "S" for thread in busy):
            return False
        now: dict[int, tuple[int, int]] = {}
        for member in live:
            queues = self._shown(member).queues
            if queues is None:
                self._queues = (0, {})
                return False
            now |= queues
        looks, before = self._queues
        self._queues = looks + 1, now
        return looks > 0 and before != now

    def _pausing(self, look: _Snapshot) -> bool:
        """Return whether a main thread that polled makes its next request.

        If it stays in the request, it is blocked. A thread that was asleep between two attempts to connect,
        and is connected now, looks the same.
        """
        asks = self._first is not None and not self._first.loops.keys().isdisjoint(look.switches)
        self._pauses = self._pauses + 1 if asks else 0
        return 0 < self._pauses <= _PAUSES

    def _forget(self) -> None:
        self._first = self._asked = None
        self._queues, self._pauses = (0, {}), 0

    def _seen(
        self, live: list[Member], threads: Mapping[int, Sequence[Thread]], now: float
    ) -> _Snapshot:
        switches, loops = {}, {}
        for member in live:
            for thread in threads[member.rank]:
                key = (member.rank, thread.id)
                polls = thread.id == member.pid and thread.call in _POLLS
                if thread.name in _LOOPS or polls:
                    loops[key] = thread.ran_ms if thread.name == RPC_LOOP else thread.switches
                elif thread.id == member.pid or not self._comes_to_nothing(member, thread):
                    switches[key] = thread.switches
        return _Snapshot(now, switches, loops, self.world.collector.changes)

    def _comes_to_nothing(self, member: Member, thread: Thread) -> bool:
        """Return whether a thread may run without helping any rank: it listens to us, polls, or is idle."""
        if thread.id == member.pid:
            polls = thread.call in _POLLS or thread.ends_in_s > _NAME_S
            return bool(member.status.meets) and polls and self.budget_s <= SOON_S
        listens = thread.fd == CHANNEL_FD or thread.inner in member.status.idle
        return listens or thread.name.startswith((_STORE, *_GPUS))

    def _is_proven(self, live: list[Member]) -> bool:
        """Return whether the records show for each rank what it waits for."""
        collector, logs = self.world.collector, self.world.logs
        if collector.dropped or any(logs.lost(member.rank) for member in live):
            return False  # A missing record may be the call that answers.
        return all(
            collector.blocked_in(member.rank) is not None
            or (
                member.status.inside in {"backward", "grad"}
                and bool(collector.unfinished(member.rank))
            )
            or self._misses_ranks(member, live)
            for member in live
        )

    def _misses_ranks(self, member: Member, live: list[Member]) -> bool:
        """Return whether a rank is in a rendezvous to which not all needed ranks can come."""
        there = {other.rank for other in live if other.status.meets == member.status.meets}
        needed = member.status.needs or range(self.world.options.world_size)
        return bool(member.status.meets) and not there.issuperset(needed)

    def _is_stuck(self, member: Member, threads: Sequence[Thread]) -> bool:
        """Return whether no thread of a rank can continue unless another rank acts."""
        gives_up = member.status.keys is not None and member.status.keys.ends_in_s <= self.budget_s
        shown = self._shown(member)
        if member.status.alarm or gives_up or shown.children_may_act or shown.in_flight:
            return False
        return all(self._waits(member, thread) for thread in threads)

    def _store_serves(self) -> bool:
        """Return whether a rank that has returned is about to answer ranks that ask its store.

        Ranks leave a rendezvous one after the other, and rank 0 may return before its store's thread has
        released the last one. On a busy machine it may return long before that.
        """
        return any(
            thread.name.startswith(_STORE) and not self._waits(member, thread)
            for member in self.world.members
            if member.done and member.exitcode is None
            for thread in self._shown(member).threads
        )

    def _others_may_set(self, live: list[Member]) -> bool:
        """Return whether a rank waits for a key in a store outside this world, which others may set."""
        ports = {
            m.status.keys.port for m in live if m.status.keys is not None and m.status.keys.port
        }
        if not ports:
            return False
        ranks = [self._shown(member) for member in self.world.members if member.exitcode is None]
        return not ports <= frozenset().union(*(rank.ports for rank in ranks))

    def _shown(self, member: Member) -> OneRank:
        return self._view.ranks[member.rank]

    def _waits(self, member: Member, thread: Thread) -> bool:
        """Return whether a thread waits for other ranks, or for threads that wait for them."""
        main = thread.id == member.pid
        if thread.name.startswith(_STORE) and thread.call != "?":
            # The store's thread runs when a rank asks it. It may also be looking up the name of a
            # client, for a second if the DNS is slow, while all other threads seem to wait.
            return thread.call.startswith("epoll") and thread.ends_in_s == FOREVER
        if thread.name in _LOOPS or self._comes_to_nothing(member, thread):
            return True
        if thread.call == "?":  # The call is hidden, so rely on the rank's own report.
            return not main or self._in_torch(member)
        # It cannot end before the launch itself ends.
        never = thread.ends_in_s > self.budget_s * BACKSTOP
        if thread.call == "futex" and thread.private and never:
            return True  # It waits for a different thread of its own process.
        if thread.call == "flock":
            return bool(self._lockers(member))
        if thread.call == "read" and thread.private:
            # A data loader's worker answers through such a pipe, but does not count as able to act.
            return not self._shown(member).has_children
        if main and member.status.asleep and thread.call.startswith("epoll"):
            return thread.ends_in_s == FOREVER
        of_torch = thread.name.startswith(_TORCHS) or (main and self._in_torch(member))
        if not of_torch or thread.call not in _WAITS_OF_TORCH or thread.ends_in_s <= self.budget_s:
            return False
        # A main thread in torch's code may wait for its own child process, such as a data loader's worker.
        return thread.private or not main or not self._shown(member).has_children

    def _lockers(self, member: Member) -> tuple[int, ...]:
        """Return the ranks that hold the file locks that a rank waits for.

        Return none if a different program may release the lock, or a child process, which shares the
        open file of the rank that forked it.
        """
        pids = {other.pid: other for other in self.world.members if not other.done}
        holders = self._shown(member).lock_holders
        if not holders <= pids.keys() or any(
            self._shown(pids[pid]).has_children for pid in holders
        ):
            return ()
        return tuple(sorted(pids[pid].rank for pid in holders))

    def _in_torch(self, member: Member) -> bool:
        """Return whether the main thread is in torch's code, by its report or, without one, its record."""
        if member.answered >= member.asked:
            return bool(member.status.inside)
        return self.world.collector.blocked_in(member.rank) is not None

    def states(self) -> list[RankState]:
        """Return what is known of each rank, for the diagnosis or for the reader of a live view."""
        return [self._state(member, member.status) for member in self.world.members]

    def _state(self, member: Member, said: Status) -> RankState:
        collector = self.world.collector
        shown = self._view.ranks.get(member.rank)  # None before the first look.
        locks = shown is not None and any(t.call == "flock" for t in shown.threads)
        return RankState(
            member.rank,
            member.state,
            collector.blocked_in(member.rank) if not member.done else None,
            collector.unfinished(member.rank),
            said.inside,
            str(collector.place(said.at)) if said.at else "",
            said.keys.keys if said.keys is not None else (),
            said.needs,
            said.named,
            self._lockers(member) if locks and not member.done else (),
            tuple((name, str(collector.place(at))) for name, at in said.others),
            f"{said.child.who} calls {said.child.call} ({collector.place(said.child.at)})"
            if said.child is not None
            else "",
        )


def waits_now(detector: DeadlockDetector) -> Diagnosis:
    """Describe what each rank is doing now, deadlocked or not."""
    # The answers may arrive too late for this call; the next one then uses them.
    detector.world.ask()
    detector.world.poll(0.0)
    detector.world.read_logs()
    return diagnose(detector.states(), detector.world.collector.known())


def _said(member: Member) -> tuple[object, ...]:
    """Return the part of a rank's report that stays the same while the rank waits."""
    said = member.status
    number = said.keys.number if said.keys is not None else 0
    return said.at, said.inside, said.meets, number, member.answered >= member.asked


def _moved(first: _Snapshot, look: _Snapshot) -> bool:
    """Return whether a record arrived, or a thread ran, began or ended, between two looks."""
    same = (
        look.changes == first.changes
        and look.switches == first.switches
        and look.loops.keys() == first.loops.keys()
    )
    return not same


def _polls_idly(thread: Thread) -> bool:
    """Return whether a thread only wakes now and then to check whether there is something to do."""
    return thread.name in _LOOPS or thread.name.startswith(_GPUS)
