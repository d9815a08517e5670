"""A set of running ranks: their channels, their output, their answers, and their exits.

The launcher creates a `World`, sends it a task and polls it until every rank has answered. `%%ranks` keeps
one world running from cell to cell. At the end, `end` is always called and leaves nothing behind.
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
from helpers.ranks.connection import HUGE_PAGES, Rendezvous, ServerExited, Servers, folder_of
from helpers.ranks.failures import LaunchError, RankError
from helpers.ranks.launch_options import Caller, Identity, Options, Task
from helpers.ranks.placement import RankSite
from helpers.ranks.preload_scan import torch_modules
from helpers.ranks.status import Status
from helpers.ranks.stop import raise_if_stopped
from helpers.ranks.thread_errors import MAX_THREAD_ERRORS
from helpers.ranks.tracebacks import ErrorReport
from helpers.trace.collector import Collector
from helpers.trace.events import Place
from helpers.trace.log import Logs

# Maximum number of bytes kept of one rank's output: half from its beginning, half from its end.
MAX_OUTPUT = 100_000
# Number of the last bytes of a rank's output that the live view shows.
MAX_RECENT_OUTPUT = 4_000
# The kind of error for a rank that printed more than its site allows.
FLOOD_ERROR = "Flood"
# Number of bytes of a rank's output to read at once.
_MAX_PIECE = 1 << 16

# These decoders are strict: data from a hostile rank is either decoded as one of these types, or rejected.
_STATUS_DECODER, _ERROR_DECODER = json.Decoder(Status), json.Decoder(ErrorReport)
NAMES_DECODER = json.Decoder(list[str])


@dataclass
class Member:
    """The launcher's information about one rank."""

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
    # The reason why the rank's host was lost, if it was.
    host_loss: str = ""
    # faulthandler's text about the rank's threads if the rank was killed by a signal.
    fault_text: str = ""
    # The rank's last report.
    status: Status = Status()
    # Number of requests for the rank's position, and of its answers.
    ask_count: int = 0
    answer_count: int = 0
    # Functions that the rank has reported as replaced.
    replaced: tuple[str, ...] = ()
    # Exceptions that ended the rank's threads during this task.
    thread_errors: tuple[RankError, ...] = ()
    _output_start: bytearray = field(default_factory=bytearray)
    _output_end: bytearray = field(default_factory=bytearray)
    # Number of dropped bytes between `_output_start` and `_output_end`.
    _dropped_bytes: int = 0
    # Number of bytes that the rank has printed so far, stored or not.
    printed_bytes: int = 0

    @property
    def is_done(self) -> bool:
        return self.state != "running"

    def add_output(self, data: bytes) -> None:
        self.printed_bytes += len(data)
        free = MAX_OUTPUT // 2 - len(self._output_start)
        self._output_start += data[:free]
        self._output_end += data[free:]
        if len(self._output_end) > MAX_OUTPUT:  # Cutting is rare, because it moves all bytes.
            self._drop_bytes(len(self._output_end) - MAX_OUTPUT // 2)

    def clear_output(self) -> None:
        self._output_start, self._output_end, self._dropped_bytes = bytearray(), bytearray(), 0

    def _drop_bytes(self, count: int) -> None:
        del self._output_end[:count]
        self._dropped_bytes += count

    @property
    def recent_output(self) -> str:
        """The end of its output, for a view that is drawn often."""
        end = (self._output_end or self._output_start)[-MAX_RECENT_OUTPUT:]
        return end.decode("utf-8", "replace")

    @property
    def output(self) -> str:
        if len(self._output_end) > MAX_OUTPUT // 2:
            self._drop_bytes(len(self._output_end) - MAX_OUTPUT // 2)
        if not self._dropped_bytes:
            return (self._output_start + self._output_end).decode("utf-8", "replace")
        # Keep only complete lines if there are any, because the cut may be inside a line or a character.
        first = self._output_start[: self._output_start.rfind(b"\n") + 1] or self._output_start
        last = self._output_end[self._output_end.find(b"\n") + 1 :] or self._output_end
        gone = (
            self._dropped_bytes
            + len(self._output_start)
            - len(first)
            + len(self._output_end)
            - len(last)
        )
        gap = f"... ({gone:,} bytes omitted here: only the beginning and the end of a rank's output are kept)"
        start = first.decode("utf-8", "replace").removesuffix("\n")
        return f"{start}\n{gap}\n{last.decode('utf-8', 'replace')}"


def _torchrun_variables(
    rank: int, sites: Sequence[RankSite], rendezvous: Rendezvous | None
) -> dict[str, str]:
    """Return the variables that torchrun sets for a worker, except variables that need an agent.

    On one machine, the rank server sets MASTER_PORT, because the port must be free in the ranks' network.
    """
    size, site = str(len(sites)), sites[rank]
    address = {"MASTER_ADDR": "127.0.0.1"}
    if rendezvous is not None:
        address = {"MASTER_ADDR": rendezvous.address, "MASTER_PORT": str(rendezvous.port)}
    groups = unique_sites(sites)
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank - sites.index(site)),
        "GROUP_RANK": str(groups.index(site)),
        "ROLE_RANK": str(rank),
        "ROLE_NAME": "default",
        "WORLD_SIZE": size,
        "LOCAL_WORLD_SIZE": str(sites.count(site)),
        "GROUP_WORLD_SIZE": str(len(groups)),
        "ROLE_WORLD_SIZE": size,
        **address,
        "TORCHELASTIC_RUN_ID": "none",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
        # torchrun's agent listens at MASTER_PORT from the start, and sets "True". With
        # TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 it lets rank 0 listen, as here, and sets "False".
        # With "True" no rank opens the store, so init_process_group("gloo") fails after its timeout, also
        # in processes spawned by a rank, and also at a port chosen by a script.
        "TORCHELASTIC_USE_AGENT_STORE": "False",
    }


class World:
    """The running ranks of a launch. Use it under the connection's lock, and call `end` in a `finally`."""

    def __init__(self, connection: Servers, options: Options, caller: Caller) -> None:
        self.connection = connection
        self.hosts = connection.host_names(options.world_size)
        self.sites = connection.sites(options.world_size)
        self.rendezvous: Rendezvous | None = None
        self.options = options
        self.caller = caller
        self.launch = connection.new_launch()
        self.members: list[Member] = []
        self.server_exited = False
        # Modules of torch imported by the ranks, which the server can import for the next ranks.
        self.imported: list[str] = []
        self.ended = False
        self.collector = Collector(options.world_size, caller.place_of, options.imagined)
        self.logs = Logs(options.world_size, confirms=options.keeps_last_calls)
        self._selector = selectors.DefaultSelector()
        self._selector.register(connection, selectors.EVENT_READ, None)
        self._has_identity = False

    def start(self) -> None:
        """Ask the server to start the ranks. Raise LaunchError if there are not enough descriptors."""
        ends: dict[int, tuple[int, int]] = {}
        rank_sockets: list[socket.socket] = []
        try:
            for rank, site in enumerate(self.sites):
                own_socket, rank_socket = socket.socketpair()
                # Otherwise, after a cell has called socket.setdefaulttimeout, the rank's end would not block.
                rank_socket.setblocking(True)
                rank_sockets.append(rank_socket)
                limits = {**wire.MAX_BYTES, wire.RESULT: site.most_result}
                member = Member(rank, site, own_socket, -1, wire.FrameReader(limits))
                self.members.append(member)
                # Output has a separate pipe, so that a rank's prints cannot be taken for a frame.
                member.output_fd, write_fd = os.pipe()
                ends[rank] = rank_socket.fileno(), write_fd
                os.set_blocking(member.output_fd, False)
                self._selector.register(
                    own_socket, selectors.EVENT_READ, (member, self._read_channel)
                )
                self._selector.register(
                    member.output_fd, selectors.EVENT_READ, (member, self._read_output)
                )
            self.connection.start_ranks(self.launch, self.logs.fd, ends)
            self.rendezvous = self.connection.rendezvous(self.launch)
        except ServerExited:
            self.server_exited = True
        except OSError as error:
            raise LaunchError(
                f"{self.options.world_size} ranks could not be started: {error.strerror or error}. Run "
                "`course doctor` to see how many ranks this machine allows."
            ) from None
        finally:
            # The server has copies of these. An open copy in this process would hide the exit of a rank.
            for rank_socket in rank_sockets:
                rank_socket.close()
            for _, write_fd in ends.values():
                os.close(write_fd)

    def send_task(self, task: Task, payloads: Sequence[Sequence[bytes]]) -> None:
        """Send each rank its task. The first task also contains the rank's identity."""
        self.read_logs()  # This also reads the records of threads from an earlier task.
        clocks = self.connection.clocks(self.options.world_size)
        self.collector = self.collector.next_collector(clocks)
        first = not self._has_identity
        task = replace(task, rewind_logs=not first and self.logs.rewind_if_full())
        if task.rewind_logs:
            self.connection.rewind_logs(self.launch)
        for member, payload in zip(self.members, payloads, strict=True):
            member.state, member.value, member.error = "running", None, None
            member.thread_errors = ()
            member.clear_output()
            rank_task = replace(task, identity=self._identity(member)) if first else task
            head = pickle.dumps(rank_task)
            # A stopped rank with a large task must not block its launcher forever.
            member.sock.settimeout(30.0)
            with contextlib.suppress(OSError):  # The rank died, and its exit status shows how.
                wire.send_frame(member.sock, wire.TASK, wire.LENGTH.pack(len(head)), head, *payload)
            member.sock.setblocking(False)
        self._has_identity = True

    def _identity(self, member: Member) -> Identity:
        options, site, rank = self.options, member.site, member.rank
        folder = folder_of(site, self.launch)
        changed, unset = site.environment()
        # Drop the variable, as torchrun does, because a tutorial's first cell may set a port that is in use.
        changed.pop("MASTER_PORT", None)
        environment = options.envs[rank] if options.envs else {}
        return Identity(
            rank,
            replace(options, env=None),  # A rank must not see the other ranks' environment.
            # Variables requested by the caller have priority, even a port.
            {**changed, **_torchrun_variables(rank, self.sites, self.rendezvous), **environment},
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
        """Read messages from the ranks and the server, waiting at most `wait_s` for the first one.

        Raise KeyboardInterrupt in a kernel's thread if Stop was pressed.
        """
        raise_if_stopped()
        if self.connection.has_messages_for(
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
        except ServerExited:
            self._selector.unregister(self.connection)
            self.server_exited = True
            return
        for kind, values in messages:
            member = self.members[values[0]]
            if kind == "started":
                member.pid = values[1]
            elif kind == "printed":
                self._add_output(member, values[1])
            elif kind == "exit":
                member.fault_text = str(values[2])
                self._on_exit(member, values[1])
            elif kind == "lost":
                member.host_loss = values[1]
                self._on_exit(member, -int(signal.SIGKILL))
            else:
                raise LaunchError(
                    f"rank {member.rank} could not be started: {values[1]}. Run `course doctor` to see "
                    "how many ranks this machine allows."
                )

    def _on_exit(self, member: Member, exitcode: int) -> None:
        self._read_output(member)
        self._read_channel(member)  # The rank's last frames may still be in the socket.
        member.exitcode = exitcode
        if not member.is_done:
            has_returned = exitcode == 0 and self.options.exit_returns
            member.state = "returned" if has_returned else "died"
            member.ended_ns = time.monotonic_ns()

    def _add_output(self, member: Member, data: bytes) -> None:
        member.add_output(data)
        if self.caller.show_output is not None:
            self.caller.show_output(member.rank, data)

    def _read_output(self, member: Member) -> None:
        while data := self._read_piece(member):
            self._add_output(member, data)
            if 0 < member.site.most_output < member.printed_bytes:
                limit = member.site.most_output
                problem = f"it printed more than {limit:,} bytes and was terminated"
                self._set_failed(member, RankError(member.rank, FLOOD_ERROR, problem))
                return
            if len(data) < _MAX_PIECE:
                return

    def _read_piece(self, member: Member) -> bytes:
        """Return a rank's next output, or b"" if there is none. Stop watching a closed output."""
        try:
            if data := os.read(member.output_fd, _MAX_PIECE):
                return data
        except BlockingIOError:
            return b""
        except OSError:
            pass
        self._unregister(member.output_fd)
        return b""

    def _read_channel(self, member: Member) -> None:
        try:
            for kind, body in member.reader.feed_from(member.sock):
                self._handle(member, kind, body)
        except BlockingIOError:
            return
        except (EOFError, ConnectionError):
            self._unregister(member.sock)
        except Exception as error:  # A hostile rank may provoke any kind of error.
            self._unregister(member.sock)
            self._set_failed(member, RankError(member.rank, "WireError", str(error)[:200]))

    def _handle(self, member: Member, kind: int, body: bytearray) -> None:
        if kind == wire.STATUS:
            # The rank was not asked, so do not even decode its report.
            if member.answer_count >= member.ask_count:
                return
            member.status = _STATUS_DECODER.decode(body)
            member.answer_count += 1
        # If a rank sends several answers to a task, only the first counts.
        elif kind == wire.RESULT and not member.is_done:
            member.value = wire.decode(body, member.site.most_parts)
            member.state, member.ended_ns = "returned", time.monotonic_ns()
            self._release_rank(member)
        elif kind == wire.ERROR and not member.is_done:
            self._set_failed(member, self._rank_error(member, _ERROR_DECODER.decode(body)))
        elif kind == wire.THREAD_ERROR and not member.is_done:
            error = self._rank_error(member, _ERROR_DECODER.decode(body))
            member.thread_errors = (*member.thread_errors, error)[:MAX_THREAD_ERRORS]
        elif kind == wire.QUESTION and not member.is_done:
            if self.caller.reply is None:
                raise wire.WireError(
                    "the rank asked a question, but this caller has no function to answer it"
                )
            text = json.encode(self.caller.reply(json.decode(body)))
            with contextlib.suppress(OSError):  # a rank that does not read replies
                wire.send_frame(member.sock, wire.REPLY, text)
        elif kind == wire.IMPORTED:
            self.imported = torch_modules(NAMES_DECODER.decode(body))
        # Accept only the first report of each rank: a hostile rank may send any number, with any text.
        elif kind == wire.REPLACED and not member.replaced:
            member.replaced = tuple(body.decode("utf-8", "replace").split("\n"))

    def read_logs(self) -> None:
        """Read the ranks' records so far."""
        if not self.ended:
            for member in self.members:
                self.collector.feed(member.rank, self.logs.read(member.rank))
            if self.options.keeps_last_calls:
                self.collector.drop_ended_calls()

    def ask_status(self) -> None:
        """Ask each unfinished rank for its position. `poll` receives the answers, if ranks can send them."""
        for member in self.members:
            if not member.is_done:
                with contextlib.suppress(OSError):  # The rank died, or has not read its task yet.
                    wire.send_frame(member.sock, wire.ASK)
                    member.ask_count += 1

    def ask_status_and_wait(self, timeout_s: float) -> None:
        """Ask each rank for its position, and wait up to `timeout_s` for the answers."""
        self.ask_status()
        deadline = time.monotonic() + timeout_s
        while not self.all_answered() and time.monotonic() < deadline:
            self.poll(0.02)

    def has_only_name_errors(self) -> bool:
        """Return whether all ranks have answered their task, without errors other than NameErrors.

        Such ranks can continue: none is inside a call, and each waits for its next task.
        """
        failed = [member.error for member in self.members if member.error is not None]
        return all(member.state in {"returned", "failed"} for member in self.members) and all(
            error.missing for error in failed
        )

    def all_answered(self) -> bool:
        """Return whether each unfinished rank has answered the last request for its position."""
        return all(
            member.is_done or member.answer_count >= member.ask_count for member in self.members
        )

    def _set_failed(self, member: Member, error: RankError) -> None:
        if not member.is_done:
            member.state, member.error, member.ended_ns = "failed", error, error.when_ns
            self._release_rank(member)

    def _release_rank(self, member: Member) -> None:
        """Make a finished rank exit, so that waits of other ranks for it fail instead of hanging."""
        if self.options.keep_others_running:
            with contextlib.suppress(OSError):
                member.sock.shutdown(socket.SHUT_WR)

    def _unregister(self, source: Any) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(source)

    def fault_frames(self, rank: int) -> tuple[Place, ...]:
        """Return the learner's lines on a rank's stack when a signal killed it, outermost first."""
        with contextlib.suppress(ValueError):
            lines = self.members[rank].fault_text.splitlines()
            places = [self._fault_line(line) for line in lines if line.startswith('  File "')]
            site = self.sites[rank]
            return tuple(place for place in reversed(places) if _is_learner_file(place.file, site))[
                -5:
            ]
        return ()

    def release(self) -> None:
        """Release the ranks after all of them have answered. The server ends them in the background."""
        self._read_rest()
        try:
            self.connection.release_launch(self.launch)
        except ServerExited:
            self.end()
        else:
            self._close()

    def end(self) -> None:
        """End all ranks and the processes that they started, wait for their exit, and remove the files."""
        try:
            # Read the output before the first rank ends. A rank that waits for this rank may notice its end,
            # print a C++ stack trace, and record the end of the waiting call.
            self._read_rest()
        finally:
            try:
                if not (self._has_started() or self.server_exited):
                    # The server is still importing modules for the ranks, which can take seconds. No rank is
                    # running, so no caller needs to wait for the end of the launch.
                    with contextlib.suppress(ServerExited):
                        self.connection.release_launch(self.launch)
                elif not self.connection.end_launch(self.launch):
                    self._end_without_server()
            finally:
                self._close()

    def _has_started(self) -> bool:
        return any(member.pid for member in self.members)

    def _read_rest(self) -> None:
        """Read the ranks' output and records so far."""
        if not self.server_exited and self.connection.has_messages_for(self.launch):
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

    def _rank_error(self, member: Member, report: ErrorReport) -> RankError:
        place = self.caller.place_of
        own_places = [
            place(*frame) for frame in report.frames if _is_learner_file(frame[0], member.site)
        ]
        when_ns = report.when_ns - self.collector.clocks[member.rank]
        frames = tuple(own_places[-8:])
        inside = self._package_line(member, report)
        return RankError(
            member.rank,
            report.kind,
            report.message,
            frames,
            when_ns,
            report.missing,
            inside,
            report.joins,
        )

    def _package_line(self, member: Member, report: ErrorReport) -> Place | None:
        """Return the innermost line of an installed package that the learner's last line called."""
        for file, line, function in reversed(report.frames):
            if _is_learner_file(file, member.site):
                return None
            if name := package_file(file):
                return replace(self.caller.place_of(file, line, function), cell=name)
        return None

    def _fault_line(self, line: str) -> Place:
        file, _, rest = line.removeprefix('  File "').partition('", line ')
        number, _, function = rest.partition(" in ")
        return self.caller.place_of(file, int(number), function)


def unique_sites(sites: Sequence[RankSite]) -> list[RankSite]:
    """Return each of the sites once, in order of first appearance."""
    return list({id(site): site for site in sites}.values())


def _is_learner_file(file: str, site: RankSite) -> bool:
    course_folder = (
        f"{site.root}/helpers/"  # the folder's path for ranks in a sandbox or on another host
    )
    return is_learner_file(file) and not file.startswith(course_folder)
