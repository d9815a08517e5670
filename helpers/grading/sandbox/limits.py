"""Define an answer's limits of time, memory, output, processes and files.

Every report shows these limits.
"""

from __future__ import annotations

from dataclasses import dataclass

_MB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """Limits for each process, or for all ranks of an exercise together.

    For each process:
        data_bytes: Requested memory.
        cpu_s: Processor time.
        pending_signals: Queued signals. The kernel counts them for all processes of a user together.
        file_bytes: Size of one file.
        open_files: Number of open files.

    For one rank:
        output_bytes: Printed output.
        result_bytes, result_parts: Size of one sent value, and its number of parts. The latter is forty times
            that of the largest right answer.

    For one sandbox:
        processes: Number of processes and threads.
        sockets, files: Number of sockets, and of files in memory.
        world_bytes: Memory of all processes.
        kernel_bytes: Growth of the kernel's memory while the sandbox runs, if it is not counted per sandbox.
        disk_bytes: Size of its private /tmp, and of its /dev/shm.

    For one submission or learner:
        submission_s, submission_cpu_s: Wall time and processor time of all exercises of a submission: twenty
            times the time of the longest notebook.
        learner_s: Wall time of all files of one learner, divided equally among them. If all 24 notebooks of
            the course are handed in, each has thirty times its usual time.
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

    def rlimits(self) -> dict[str, int]:
        """Return the limits for setrlimit, by setrlimit's names."""
        return {
            "CORE": 0,
            "CPU": self.cpu_s,
            "DATA": self.data_bytes,
            "FSIZE": self.file_bytes,
            "NOFILE": self.open_files,
            "NPROC": self.processes,
            # The kernel counts pending signals for all processes of a user. An answer can use up its limit.
            # The grader's limit is higher, so some signals are left for the grader.
            "SIGPENDING": self.pending_signals,
        }
