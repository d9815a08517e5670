"""How much an answer may use: of time, memory, processes, files, output. Told in every report."""

from __future__ import annotations

from dataclasses import dataclass

_MB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """What all ranks of an exercise together, or each process, may use.

    processes: with their threads, of one sandbox. sockets, files: of one sandbox. data_bytes: memory
    that one process asks for.
    world_bytes: memory of all processes of a sandbox. kernel_bytes: growth of the kernel's own memory
    meanwhile, where it is not counted for each sandbox. pending_signals: that a process may queue, next to
    those of other processes of its user. disk_bytes: of the private /tmp, and of
    /dev/shm. file_bytes: of one file. output_bytes: printed by one rank. result_bytes: of one value that a
    rank sends; result_parts: its parts, forty times what the largest right answer has. cpu_s: of one
    process. submission_s, submission_cpu_s: of all exercises of a submission, wall time and processor time:
    twenty times what the longest notebook takes. learner_s: wall time of all files of one learner, shared out
    equally among them: with all 24 notebooks of the course, thirty times what one of them takes.
    """

    processes: int = 600
    data_bytes: int = 2048 * _MB
    world_bytes: int = 3072 * _MB
    kernel_bytes: int = 1024 * _MB
    disk_bytes: int = 256 * _MB
    file_bytes: int = 128 * _MB
    open_files: int = 1024
    pending_signals: int = 1000
    sockets: int = 2000
    files: int = 100_000
    output_bytes: int = 8 * _MB
    result_bytes: int = 16 * _MB
    result_parts: int = 100_000
    cpu_s: int = 120
    submission_s: int = 1200
    submission_cpu_s: int = 1200
    learner_s: int = 7200

    def of_a_process(self) -> dict[str, int]:
        """Return the limits that the kernel keeps, by the names that setrlimit has for them."""
        return {
            "CORE": 0,
            "CPU": self.cpu_s,
            "DATA": self.data_bytes,
            "FSIZE": self.file_bytes,
            "NOFILE": self.open_files,
            "NPROC": self.processes,
            # The kernel counts those of all processes of a user: an answer can use up this many, and leaves
            # the grader, whose limit is higher, its own.
            "SIGPENDING": self.pending_signals,
        }
