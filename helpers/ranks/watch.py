"""Decides, from outside and while it runs, whether a world is stuck.

    each look:  the kernel's word on every thread ──> can one go on? ──yes──> forget all, look again later
                                                          │ no
                ask each rank where it is, look again:    │
                has any thread run since? ────────yes─────┘ begin again
                          │ no
                do the records prove it? ──yes──> Diagnosis
                          │ no
                has it been so for a while, although gloo's own threads did get the processor? ──> Diagnosis

Two looks between which no thread has run make one moment at which all of them waited: so no message can
have passed from one to the other between the looks, however slow or busy the machine is. A rank that
computes, sleeps, reads, is stopped or has a process of its own to wait for can go on: then there is
nothing to tell, however long it takes, and the launch's budget has the last word. So it is with a loop that
polls a flag or `is_completed()`, which the clock may end as well, and with `accept`, as anybody may connect:
a RankTimeout names their lines.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from helpers.ranks.budget import BACKSTOP
from helpers.ranks.observed import HereView, OneRank, View
from helpers.ranks.status import SOON_S, Status
from helpers.ranks.threads import FOREVER, GLOO_LOOP, RPC_LOOP, Thread
from helpers.ranks.worker import CHANNEL_FD
from helpers.ranks.world import Member, World
from helpers.trace.diagnosis import RankState, can_complete, diagnose
from helpers.trace.events import Diagnosis

LOOK_S = 0.1
# The pause before the next look while nobody seems to be able to go on.
LOOK_AGAIN_S = 0.02
# How long nothing may move where the records do not prove that nothing can: a store is polled, a transfer
# has both its ends, nothing is recorded.
STUCK_UNPROVEN_S = 0.6
# The same where the kernel does not tell in which system calls ranks wait: in a grader's sandbox.
HIDDEN_S = 5.0
# How often each of `_LOOPS` must have looked at its connections meanwhile: gloo's does so every 10 ms, RPC's
# more than once in each ms that it runs. On a machine so busy that they cannot, nothing is known. And how
# often we must have looked at what gloo's does.
_LOOKS = 10
# How long to take in what ranks say before looking whether all hosts have answered.
_PUMP_S = 0.005
# How long a rank is given to say where it is. One that a call in C++ keeps from it is judged without.
_ANSWER_S = 1.0

# Threads that look again and again whether a message has come.
_LOOPS = frozenset({GLOO_LOOP, RPC_LOOP})
# How threads that torch makes for itself are called. What they wait for comes from other ranks.
_TORCHS = ("gloo_", "pt_", "TP_")
# Such threads look at their GPUs every now and then, for as long as the process lives.
_GPUS = ("pt_nccl", "cuda")
_WAITS_OF_TORCH = frozenset({"futex", "poll", "ppoll", "epoll_wait", "epoll_pwait"})
_POLLS = frozenset({"nanosleep", "clock_nanosleep"})
# A wait in a rendezvous that ends sooner may be for the name of a machine, which a slow DNS will give: the
# C library asks each server for up to 30 s.
_NAME_S = 60.0
# In how many looks on end a main thread that polled may be found at something else: at its question.
_PAUSES = 5
_STORE = "pt_tcpstore"


@dataclass(frozen=True)
class _Look:
    """What one look has seen: for each thread, how often it had given up the processor.

    switches: of those that count; none of them may have run since. loops: of `_LOOPS` and of main threads
    that poll a store, all of which must have, and must still be at it.
    """

    at: float
    switches: dict[tuple[int, int], int]
    loops: dict[tuple[int, int], int]
    changes: int


@dataclass
class Watcher:
    """Looks at a world now and then; says when it is stuck, and why.

    budget_s: how long the world may take; no wait of torch that would end later is going to end.
    """

    world: World
    budget_s: float
    # After how many seconds to look again.
    next_s: float = LOOK_S
    _first: _Look | None = None
    # How many looks have found gloo's threads busy, and the connections as they were then.
    _queues: tuple[int, dict[int, tuple[int, int]]] = (0, {})
    _asked: float | None = None
    _pauses: int = 0
    _skipped: int = 0
    # What the system shows at the look that is under way.
    _view: View = HereView({}, 0)

    def look(self, now: float) -> Diagnosis | None:
        """Return the diagnosis of a stuck world, or None. `now` in seconds, on any steady clock."""
        self.next_s = LOOK_S
        live = [member for member in self.world.members if not member.done]
        if sys.platform != "linux" or not live or not all(member.pid for member in live):
            return None
        pids = {member.rank: member.pid for member in self.world.members}
        # Ranks on other hosts may be sending what has to be taken in before the answer comes.
        self._view = self.world.connection.view(
            self.world.launch, pids, lambda: self.world.pump(_PUMP_S)
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
        """Whether a rank that polls a file for a key is looking into it: then this look says nothing.

        Not for long: a rank that has found its key goes on to something else.
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
        """Whether a rank may be unable to go on by itself, as far as can be seen without asking it.

        A thread that it has already called idle may be running: on a busy machine a heartbeat spends more
        time in the queue for a core than asleep, and would hide every deadlock.
        """
        main = threads[0]
        waits = (
            main.call in {"?", "read", "flock"}
            or main.call in _POLLS
            or main.call in _WAITS_OF_TORCH
        )
        return waits and all(
            thread.state == "S" or _looks_round(thread) or thread.inner in member.status.idle
            for thread in threads
        )

    def _judge(
        self, live: list[Member], threads: Mapping[int, Sequence[Thread]], look: _Look
    ) -> Diagnosis | None:
        """Return the diagnosis of a world of which no thread has run between two looks, if it is sure."""
        assert self._first is not None
        lasted = look.at - self._first.at
        every = [thread for some in threads.values() for thread in some]
        if lasted < HIDDEN_S and any(thread.call == "?" for thread in every):
            return None
        looked = all(look.loops[t] - self._first.loops[t] >= _LOOKS for t in look.loops)
        # Gloo's thread works on a message; or it turns round and round and moves no byte, because a Work
        # that nobody has kept took its transfer along.
        in_vain = self._queues[0] >= _LOOKS
        asleep = all(t.state == "S" or t.name in _LOOPS - {GLOO_LOOP} for t in every)
        unproven = lasted >= STUCK_UNPROVEN_S and looked and (asleep or in_vain)
        if not unproven and not self._is_proven(live):
            return None
        states, trace = self.states(), self.world.collector.known()  # a long one takes a while
        if not unproven and can_complete(states, trace):
            return None
        # What ranks said came before the last look. Has one answered since, or gone on after a poll?
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
        """Tell, where gloo's threads are busy, whether other bytes wait in the connections than before."""
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

    def _pausing(self, look: _Look) -> bool:
        """Tell whether a main thread that polled is at its question. If it stays there, it polls no more.

        One that slept until its next try to connect looks the same, and is now past it.
        """
        asks = self._first is not None and not self._first.loops.keys().isdisjoint(look.switches)
        self._pauses = self._pauses + 1 if asks else 0
        return 0 < self._pauses <= _PAUSES

    def _forget(self) -> None:
        self._first = self._asked = None
        self._queues, self._pauses = (0, {}), 0

    def _seen(
        self, live: list[Member], threads: Mapping[int, Sequence[Thread]], now: float
    ) -> _Look:
        switches, loops = {}, {}
        for member in live:
            for thread in threads[member.rank]:
                key = (member.rank, thread.id)
                polls = thread.id == member.pid and thread.call in _POLLS
                if thread.name in _LOOPS or polls:
                    loops[key] = thread.ran_ms if thread.name == RPC_LOOP else thread.switches
                elif thread.id == member.pid or not self._comes_to_nothing(member, thread):
                    switches[key] = thread.switches
        return _Look(now, switches, loops, self.world.collector.changes)

    def _comes_to_nothing(self, member: Member, thread: Thread) -> bool:
        """Tell a thread that may run and nothing has happened: it listens to us, polls, passes time."""
        if thread.id == member.pid:
            polls = thread.call in _POLLS or thread.ends_in_s > _NAME_S
            return bool(member.status.meets) and polls and self.budget_s <= SOON_S
        listens = thread.fd == CHANNEL_FD or thread.inner in member.status.idle
        return listens or thread.name.startswith((_STORE, *_GPUS))

    def _is_proven(self, live: list[Member]) -> bool:
        """Tell whether the records say of each rank what it waits for."""
        collector, logs = self.world.collector, self.world.logs
        if collector.dropped or any(logs.lost(member.rank) for member in live):
            return False  # what is missing may be the call that answers
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
        """Tell whether a rank is in a rendezvous to which not all can come who are needed."""
        there = {other.rank for other in live if other.status.meets == member.status.meets}
        needed = member.status.needs or range(self.world.options.world_size)
        return bool(member.status.meets) and not there.issuperset(needed)

    def _is_stuck(self, member: Member, threads: Sequence[Thread]) -> bool:
        """Tell whether no thread of a rank can go on unless another rank makes it."""
        gives_up = member.status.keys is not None and member.status.keys.ends_in_s <= self.budget_s
        shown = self._shown(member)
        if member.status.alarm or gives_up or shown.children_may_act or shown.in_flight:
            return False
        return all(self._waits(member, thread) for thread in threads)

    def _store_serves(self) -> bool:
        """Tell whether a rank that has returned is about to answer those who ask its store.

        Those of one rendezvous leave it one after the other, and rank 0 may be through before the thread that
        lets them go has reached the last: on a machine with a long queue for its cores, long before.
        """
        return any(
            thread.name.startswith(_STORE) and not self._waits(member, thread)
            for member in self.world.members
            if member.done and member.exitcode is None
            for thread in self._shown(member).threads
        )

    def _others_may_set(self, live: list[Member]) -> bool:
        """Whether a rank waits for a key of a store that no rank serves: the notebook may, or another job."""
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
        """Tell whether a thread waits for other ranks, or for threads that wait for them."""
        main = thread.id == member.pid
        if thread.name.startswith(_STORE) and thread.call != "?":
            # Asked for something, it runs; or it looks up the name of who has come, for a second where
            # the DNS is slow. All others may seem to wait meanwhile.
            return thread.call.startswith("epoll") and thread.ends_in_s == FOREVER
        if thread.name in _LOOPS or self._comes_to_nothing(member, thread):
            return True
        if thread.call == "?":  # hidden: what the rank itself says must do
            return not main or self._in_torch(member)
        never = (
            thread.ends_in_s > self.budget_s * BACKSTOP
        )  # not before the launch itself has ended
        if thread.call == "futex" and thread.private and never:
            return True  # for another thread of its own process
        if thread.call == "flock":
            return bool(self._lockers(member))
        if thread.call == "read" and thread.private:
            # A worker that loads data answers by such a pipe, and is not counted among those that may act.
            return not self._shown(member).has_children
        if main and member.status.asleep and thread.call.startswith("epoll"):
            return thread.ends_in_s == FOREVER
        of_torch = thread.name.startswith(_TORCHS) or (main and self._in_torch(member))
        if not of_torch or thread.call not in _WAITS_OF_TORCH or thread.ends_in_s <= self.budget_s:
            return False
        # A main thread in torch's code may wait for a process of its own: a worker that loads data.
        return thread.private or not main or not self._shown(member).has_children

    def _lockers(self, member: Member) -> tuple[int, ...]:
        """Return the ranks that hold the file locks that a rank waits for.

        Return none if a lock may be released without them: by a different program, or by a child process,
        which shares the open file of the rank that forked it.
        """
        pids = {other.pid: other for other in self.world.members if not other.done}
        holders = self._shown(member).lock_holders
        if not holders <= pids.keys() or any(
            self._shown(pids[pid]).has_children for pid in holders
        ):
            return ()
        return tuple(sorted(pids[pid].rank for pid in holders))

    def _in_torch(self, member: Member) -> bool:
        """Tell whether the main thread is in torch's code: by its own word, or where it cannot speak."""
        if member.answered >= member.asked:
            return bool(member.status.inside)
        return self.world.collector.blocked_in(member.rank) is not None

    def states(self) -> list[RankState]:
        """Return what is known of each rank, for the diagnosis or for the reader of a live view."""
        return [self._state(member, member.status) for member in self.world.members]

    def _state(self, member: Member, said: Status) -> RankState:
        collector = self.world.collector
        shown = self._view.ranks.get(member.rank)  # none before the first look
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


def waits_now(watcher: Watcher) -> Diagnosis:
    """Say what each rank does now, whether or not it is stuck."""
    watcher.world.ask()  # for the next time, if they cannot answer at once
    watcher.world.pump(0.0)
    watcher.world.read_logs()
    return diagnose(watcher.states(), watcher.world.collector.known())


def _said(member: Member) -> tuple[object, ...]:
    """Return what a rank has said of itself, so far as it stays the same while the rank waits."""
    said = member.status
    number = said.keys.number if said.keys is not None else 0
    return said.at, said.inside, said.meets, number, member.answered >= member.asked


def _moved(first: _Look, look: _Look) -> bool:
    """Tell whether something has happened between two looks: a record, a thread that ran, came or went."""
    same = (
        look.changes == first.changes
        and look.switches == first.switches
        and look.loops.keys() == first.loops.keys()
    )
    return not same


def _looks_round(thread: Thread) -> bool:
    """Tell a thread that wakes now and then to look whether there is something to do."""
    return thread.name in _LOOPS or thread.name.startswith(_GPUS)
