"""A set of running ranks: their channels, their output, their answers, and how they ended.

The launcher makes a `World`, sends it a task and polls it until every rank has answered. `%%ranks` keeps one
from cell to cell. `end` is always called, and leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import selectors
import signal
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import json

from helpers.ranks import wire
from helpers.ranks.cells import is_learner_file, package_file
from helpers.ranks.connection import HUGE_PAGES, Rendezvous, ServerGone, Servers, folder_of
from helpers.ranks.failures import LaunchError, RankError
from helpers.ranks.options import Caller, Identity, Options, Task
from helpers.ranks.preload_scan import of_torch
from helpers.ranks.site import RankSite
from helpers.ranks.status import Status
from helpers.ranks.stop import raise_if_stopped
from helpers.ranks.tracebacks import ErrorReport
from helpers.trace.collector import Collector
from helpers.trace.events import Place
from helpers.trace.log import Logs

# How many bytes of one rank's output to keep in one launch: half from its beginning, half from its end.
MAX_OUTPUT = 100_000
# How many of its last bytes the live view shows.
LATEST = 4_000
# The kind of error of a rank that printed more than its site allows.
FLOOD = "Flood"

# These decoders are strict: data from a hostile rank is decoded as one of these types, or is an error.
_STATUS, _RAISED = json.Decoder(Status), json.Decoder(ErrorReport)
NAMES = json.Decoder(list[str])


@dataclass
class Member:
    """One rank, as its launcher sees it."""

    rank: int
    site: RankSite
    sock: socket.socket
    output_fd: int
    reader: wire.FrameReader = field(default_factory=wire.FrameReader)
    pid: int = 0
    # "running", "returned", "failed" or "died".
    state: str = "running"
    value: Any = None
    error: RankError | None = None
    exitcode: int | None = None
    ended_ns: int = 0
    # Why its host was lost, if it was.
    lost: str = ""
    # What faulthandler wrote about its threads when a signal ended it.
    fault: str = ""
    # The last report of the rank.
    status: Status = Status()
    # How often it was asked where it is, and how often it has answered.
    asked: int = 0
    answered: int = 0
    # The functions that it reported as replaced.
    replaced: tuple[str, ...] = ()
    _first: bytearray = field(default_factory=bytearray)
    _last: bytearray = field(default_factory=bytearray)
    # How many bytes between `_first` and `_last` were not kept.
    _between: int = 0
    # How many bytes the rank has printed in its life, kept or not.
    printed: int = 0

    @property
    def done(self) -> bool:
        return self.state != "running"

    def add_output(self, data: bytes) -> None:
        self.printed += len(data)
        room = MAX_OUTPUT // 2 - len(self._first)
        self._first += data[:room]
        self._last += data[room:]
        if len(self._last) > MAX_OUTPUT:  # Not each time: it moves all bytes.
            self._drop(len(self._last) - MAX_OUTPUT // 2)

    def forget_output(self) -> None:
        self._first, self._last, self._between = bytearray(), bytearray(), 0

    def _drop(self, count: int) -> None:
        del self._last[:count]
        self._between += count

    @property
    def latest(self) -> str:
        """The end of its output, for a view that is drawn often, however long the output is."""
        end = (self._last or self._first)[-LATEST:]
        return end.decode("utf-8", "replace")

    @property
    def output(self) -> str:
        if len(self._last) > MAX_OUTPUT // 2:
            self._drop(len(self._last) - MAX_OUTPUT // 2)
        if not self._between:
            return (self._first + self._last).decode("utf-8", "replace")
        # Keep whole lines if there are any: the cut may be inside a line or a character.
        first = self._first[: self._first.rfind(b"\n") + 1] or self._first
        last = self._last[self._last.find(b"\n") + 1 :] or self._last
        gone = self._between + len(self._first) - len(first) + len(self._last) - len(last)
        gap = f"... ({gone:,} bytes omitted here: only the beginning and the end of a rank's output are kept)"
        begin = first.decode("utf-8", "replace").removesuffix("\n")
        return f"{begin}\n{gap}\n{last.decode('utf-8', 'replace')}"


def _as_torchrun(
    rank: int, sites: Sequence[RankSite], rendezvous: Rendezvous | None
) -> dict[str, str]:
    """Return the variables that torchrun sets for a worker, except those that need its agent.

    On one machine, MASTER_PORT is left to the rank server, because the port must be free where ranks run.
    """
    size, own = str(len(sites)), sites[rank]
    at = {"MASTER_ADDR": "127.0.0.1"}
    if rendezvous is not None:
        at = {"MASTER_ADDR": rendezvous.address, "MASTER_PORT": str(rendezvous.port)}
    groups = unique(sites)
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank - sites.index(own)),
        "GROUP_RANK": str(groups.index(own)),
        "ROLE_RANK": str(rank),
        "ROLE_NAME": "default",
        "WORLD_SIZE": size,
        "LOCAL_WORLD_SIZE": str(sites.count(own)),
        "GROUP_WORLD_SIZE": str(len(groups)),
        "ROLE_WORLD_SIZE": size,
        **at,
        "TORCHELASTIC_RUN_ID": "none",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
        # torchrun's agent listens at MASTER_PORT from the start, and sets "True". With
        # TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 it leaves that to rank 0, as here, and sets "False". With
        # "True" no rank opens the store, so init_process_group("gloo") fails after its timeout, including
        # in processes that a rank spawns, and at a port that a script has chosen itself.
        "TORCHELASTIC_USE_AGENT_STORE": "False",
    }


class World:
    """The running ranks of a launch. Use under the connection's lock; call `end` in a `finally`."""

    def __init__(self, connection: Servers, options: Options, caller: Caller) -> None:
        self.connection = connection
        self.hosts = connection.host_names(options.world_size)
        self.sites = connection.sites(options.world_size)
        self.rendezvous: Rendezvous | None = None
        self.options = options
        self.caller = caller
        self.launch = connection.new_launch()
        self.members: list[Member] = []
        self.server_gone = False
        # Modules of torch that the ranks had to import. The server can import them for the next ranks.
        self.imported: list[str] = []
        self.ended = False
        self.collector = Collector(options.world_size, caller.place_of, options.imagined)
        self.logs = Logs(options.world_size)
        self._selector = selectors.DefaultSelector()
        self._selector.register(connection, selectors.EVENT_READ, None)
        self._given = False

    def start(self) -> None:
        """Ask the server to start the ranks. Raise LaunchError if there are not enough descriptors."""
        ends: dict[int, tuple[int, int]] = {}
        theirs: list[socket.socket] = []
        try:
            for rank, site in enumerate(self.sites):
                mine, other = socket.socketpair()
                # If a cell has called socket.setdefaulttimeout, the rank's end would not block.
                other.setblocking(True)
                theirs.append(other)
                limits = {**wire.MAX_BYTES, wire.RESULT: site.most_result}
                member = Member(rank, site, mine, -1, wire.FrameReader(limits))
                self.members.append(member)
                # Output has its own pipe, so that a rank's prints cannot be taken for a frame.
                member.output_fd, write = os.pipe()
                ends[rank] = other.fileno(), write
                os.set_blocking(member.output_fd, False)
                self._selector.register(mine, selectors.EVENT_READ, (member, self._read_channel))
                self._selector.register(
                    member.output_fd, selectors.EVENT_READ, (member, self._read_output)
                )
            self.connection.start_ranks(self.launch, self.logs.fd, ends)
            self.rendezvous = self.connection.rendezvous(self.launch)
        except ServerGone:
            self.server_gone = True
        except OSError as error:
            raise LaunchError(
                f"{self.options.world_size} ranks could not be started: {error.strerror or error}. Run "
                "`course doctor` to see how many ranks this machine allows."
            ) from None
        finally:
            # The server has copies. An open one here would hide the exit of a rank.
            for other in theirs:
                other.close()
            for _, write in ends.values():
                os.close(write)

    def send_task(self, task: Task, payloads: Sequence[Sequence[bytes]]) -> None:
        """Send each rank its task. The first task also contains the rank's identity."""
        self.read_logs()  # Read what threads of an earlier task have recorded.
        clocks = self.connection.clocks(self.options.world_size)
        self.collector = self.collector.next(clocks)
        first = not self._given
        task = replace(task, rewind=not first and self.logs.rewind_if_full())
        if task.rewind:
            self.connection.rewind(self.launch)
        for member, payload in zip(self.members, payloads, strict=True):
            member.state, member.value, member.error = "running", None, None
            member.forget_output()
            own = replace(task, identity=self._identity(member)) if first else task
            head = pickle.dumps(own)
            # A stopped rank with a large task must not block its launcher forever.
            member.sock.settimeout(30.0)
            with contextlib.suppress(OSError):  # The rank died, and its exit status shows how.
                wire.send_frame(member.sock, wire.TASK, wire.LENGTH.pack(len(head)), head, *payload)
            member.sock.setblocking(False)
        self._given = True

    def _identity(self, member: Member) -> Identity:
        options, site, rank = self.options, member.site, member.rank
        folder = folder_of(site, self.launch)
        changed, unset = site.environment()
        # Drop it as torchrun does: a tutorial's first cell sets a port that may be in use.
        changed.pop("MASTER_PORT", None)
        own = options.envs[rank] if options.envs else {}
        return Identity(
            rank,
            replace(options, env=None),  # A rank must not see the other ranks' environment.
            # Variables that the caller asked for have priority, even a port.
            {**changed, **_as_torchrun(rank, self.sites, self.rendezvous), **own},
            [*unset, *(name for name in HUGE_PAGES if name not in os.environ)],
            folder,
            f"{folder}/temp" if options.own_temp else "",
            site.cwd(),
            site.path(),
            site.most_result,
            f"{self.rendezvous.address}:{self.rendezvous.store}"
            if self.rendezvous is not None
            else "",
        )

    def poll(self, wait_s: float) -> None:
        """Read messages from ranks and server, waiting at most `wait_s` for the first.

        Raise KeyboardInterrupt in a kernel's thread if Stop was pressed.
        """
        raise_if_stopped()
        if self.connection.has_word_for(
            self.launch
        ):  # The message was read while a different world was polled.
            self._handle_server()
        for key, _ in self._selector.select(wait_s):
            if key.data is None:
                self._handle_server()
            else:
                member, read = key.data
                read(member)

    def _handle_server(self) -> None:
        try:
            messages = self.connection.messages(self.launch)
        except ServerGone:
            self._selector.unregister(self.connection)
            self.server_gone = True
            return
        for word, values in messages:
            member = self.members[values[0]]
            if word == "started":
                member.pid = values[1]
            elif word == "printed":
                member.add_output(values[1])
            elif word == "exit":
                member.fault = str(values[2])
                self._on_exit(member, values[1])
            elif word == "lost":
                member.lost = values[1]
                self._on_exit(member, -int(signal.SIGKILL))
            else:
                raise LaunchError(
                    f"rank {member.rank} could not be started: {values[1]}. Run `course doctor` to see "
                    "how many ranks this machine allows."
                )

    def _on_exit(self, member: Member, exitcode: int) -> None:
        self._read_output(member)
        self._read_channel(member)  # Its last frames may still be in the socket.
        member.exitcode = exitcode
        if not member.done:
            member.state, member.ended_ns = "died", time.monotonic_ns()

    def _read_output(self, member: Member) -> None:
        try:
            while data := os.read(member.output_fd, 1 << 16):
                member.add_output(data)
                if 0 < member.site.most_output < member.printed:
                    most = member.site.most_output
                    said = f"it printed more than {most:,} bytes and was terminated"
                    self._fail(member, RankError(member.rank, FLOOD, said))
                    return
                if len(data) < 1 << 16:
                    return
        except BlockingIOError:
            return
        except OSError:
            pass
        self._forget(member.output_fd)

    def _read_channel(self, member: Member) -> None:
        try:
            for kind, body in member.reader.feed_from(member.sock):
                self._handle(member, kind, body)
        except BlockingIOError:
            return
        except (EOFError, ConnectionError):
            self._forget(member.sock)
        except Exception as error:  # A hostile rank may provoke any error. All mean the same.
            self._forget(member.sock)
            self._fail(member, RankError(member.rank, "WireError", str(error)[:200]))

    def _handle(self, member: Member, kind: int, body: bytearray) -> None:
        if kind == wire.STATUS:
            # The rank was not asked, so do not even decode its report.
            if member.answered >= member.asked:
                return
            member.status = _STATUS.decode(body)
            member.answered += 1
        # If a rank sends several answers to a task, only the first counts.
        elif kind == wire.RESULT and not member.done:
            member.value = wire.decode(body, member.site.most_parts)
            member.state, member.ended_ns = "returned", time.monotonic_ns()
            self._release_rank(member)
        elif kind == wire.ERROR and not member.done:
            self._fail(member, self._error_of(member, _RAISED.decode(body)))
        elif kind == wire.QUESTION and not member.done:
            if self.caller.reply is None:
                raise wire.WireError("a question, but the caller answers none")
            text = json.encode(self.caller.reply(json.decode(body)))
            with contextlib.suppress(OSError):  # a rank that does not read replies
                wire.send_frame(member.sock, wire.REPLY, text)
        elif kind == wire.IMPORTED:
            self.imported = of_torch(NAMES.decode(body))
        # Only the first report of each rank: a hostile rank may send any number, with any text.
        elif kind == wire.REPLACED and not member.replaced:
            member.replaced = tuple(body.decode("utf-8", "replace").split("\n"))

    def read_logs(self) -> None:
        """Read what the ranks have recorded so far."""
        if not self.ended:
            for member in self.members:
                self.collector.feed(member.rank, self.logs.read(member.rank))

    def ask(self) -> None:
        """Ask each unfinished rank where it is. `poll` receives the answers, if ranks can send them."""
        for member in self.members:
            if not member.done:
                with contextlib.suppress(OSError):  # It died, or has not read its task yet.
                    wire.send_frame(member.sock, wire.ASK)
                    member.asked += 1

    def ask_and_wait(self, patience_s: float) -> None:
        """Ask each rank where it is, and wait up to `patience_s` for the answers."""
        self.ask()
        deadline = time.monotonic() + patience_s
        while not self.all_answered() and time.monotonic() < deadline:
            self.poll(0.02)

    def only_lacks_names(self) -> bool:
        """Return whether all ranks have answered their task, with no errors other than NameErrors.

        Such ranks can continue: none is inside a call, and each waits for its next task.
        """
        failed = [m.error for m in self.members if m.error is not None]
        return all(m.state in {"returned", "failed"} for m in self.members) and all(
            error.missing for error in failed
        )

    def all_answered(self) -> bool:
        """Return whether each unfinished rank has answered since it was last asked where it is."""
        return all(m.done or m.answered >= m.asked for m in self.members)

    def _fail(self, member: Member, error: RankError) -> None:
        if not member.done:
            member.state, member.error, member.ended_ns = "failed", error, error.when_ns
            self._release_rank(member)

    def _release_rank(self, member: Member) -> None:
        """Make a finished rank exit, so that waits of other ranks for it fail instead of hanging."""
        if self.options.others_go_on:
            with contextlib.suppress(OSError):
                member.sock.shutdown(socket.SHUT_WR)

    def _forget(self, source: Any) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(source)

    def fault_frames(self, rank: int) -> tuple[Place, ...]:
        """Return the learner's lines that a rank was on when a signal ended it, outermost first."""
        with contextlib.suppress(ValueError):
            lines = self.members[rank].fault.splitlines()
            found = [self._fault_line(line) for line in lines if line.startswith('  File "')]
            site = self.sites[rank]
            return tuple(p for p in reversed(found) if _is_learners(p.file, site))[-5:]
        return ()

    def release(self) -> None:
        """Release ranks that have all answered. The server ends them in the background."""
        self._take_in()
        try:
            self.connection.dismiss_launch(self.launch)
        except ServerGone:
            self.end()
        else:
            self._close()

    def end(self) -> None:
        """End every rank and all processes that they made, wait for it, and remove the world's files."""
        try:
            # Read before the first rank ends: a rank that waits for the first one may notice its end,
            # print a C++ stack trace, and record that its own call has ended.
            self._take_in()
        finally:
            try:
                if not self.connection.end_launch(self.launch):
                    self._end_without_server()
            finally:
                self._close()

    def _take_in(self) -> None:
        """Read what the ranks have printed and recorded so far."""
        if not self.server_gone and self.connection.has_word_for(self.launch):
            self._handle_server()
        for member in self.members:
            if member.output_fd >= 0:
                self._read_output(member)
        self.read_logs()

    def _close(self) -> None:
        self._selector.close()
        self.logs.close()
        for member in self.members:
            member.sock.close()
            fd, member.output_fd = member.output_fd, -1
            if fd >= 0:
                os.close(fd)
        self.ended = True

    def _end_without_server(self) -> None:
        for member in self.members:
            if member.pid and member.exitcode is None:
                self.connection.kill(member.pid)

    def _error_of(self, member: Member, said: ErrorReport) -> RankError:
        place = self.caller.place_of
        own = [place(*frame) for frame in said.frames if _is_learners(frame[0], member.site)]
        when_ns = said.when_ns - self.collector.clocks[member.rank]
        frames = tuple(own[-8:])
        inside = self._package_line(member, said)
        return RankError(
            member.rank, said.kind, said.message, frames, when_ns, said.missing, inside
        )

    def _package_line(self, member: Member, said: ErrorReport) -> Place | None:
        """Return the innermost line of an installed package that the learner's last line called."""
        for file, line, function in reversed(said.frames):
            if _is_learners(file, member.site):
                return None
            if name := package_file(file):
                return replace(self.caller.place_of(file, line, function), cell=name)
        return None

    def _fault_line(self, line: str) -> Place:
        file, _, rest = line.removeprefix('  File "').partition('", line ')
        number, _, function = rest.partition(" in ")
        return self.caller.place_of(file, int(number), function)


def unique(sites: Sequence[RankSite]) -> list[RankSite]:
    """Return each of the sites once, in order of first appearance."""
    return list({id(site): site for site in sites}.values())


def _is_learners(file: str, site: RankSite) -> bool:
    engine = f"{site.root}/helpers/"  # its path for the ranks, in a sandbox or on another host
    return is_learner_file(file) and not file.startswith(engine)
