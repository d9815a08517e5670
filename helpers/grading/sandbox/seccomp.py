"""Refuse, with a seccomp filter, system calls that no answer needs.

`inside` installs the filter in the rank server before it forks ranks. The filter, a small program in classic
BPF, cannot be removed. See "Seccomp BPF" in the kernel's documentation.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct

from helpers.ranks.processes import NO_NEW_PRIVS, prctl

_REFUSED_CALLS: dict[str, tuple[int, int]] = {
    # Name: number on x86_64, number on aarch64.
    # Access to other processes: all ranks run as the same user, but each may see only its own inputs.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    # In a new user namespace, a process has every capability over new mounts and networks, and can call
    # kernel code that otherwise only root can call.
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsmount": (432, 432),
    # A large attack surface of the kernel that no exercise needs.
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    # Memory not mapped by any process, which the guard therefore does not see.
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    # System V IPC and message queues outlive their creators, and the guard does not see them.
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    # The kernel's keyrings belong to a user, not to a sandbox, so two sandboxes could communicate through
    # them.
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    # Calls that also need capabilities which ranks do not have (`drop_capabilities`).
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "quotactl": (179, 60),
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "syslog": (103, 116),
    "fanotify_init": (300, 262),
    "vhangup": (153, 58),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    # These calls act on all processes of a user, so an answer could use them to slow down other answers and
    # the grader.
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
}
# Calls that set a file's owner, permissions and times: Landlock allows them for any file.
_METADATA_CALLS: dict[str, tuple[int | None, int | None]] = {
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "lchown": (94, None),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "umask": (95, 166),  # `LandlockSite.sweep` recognizes a sandbox's files by their permissions
}

_CLONE = (56, 220)
_CLONE3 = (435, 435)
_SOCKET, _FCNTL = (41, 198), (72, 25)
# Calls whose first argument is a process. Only 0, the calling process, is allowed. Otherwise a process could
# lower the priority of any process of the same user, or move it to a single core.
_SELF_ONLY_CALLS: dict[str, tuple[int, int]] = {
    "prlimit64": (302, 261),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
}
# A command of fcntl. With a lease, a file's owner blocks every process that opens the file, including the
# grader, for up to 45 seconds (see "Leases" in fcntl(2)). Python's own files may belong to the ranks' user.
_SETLEASE = 1024
# Socket families: Unix, IPv4, IPv6, and netlink, which glibc uses to list addresses. Other families, such
# as sockets to the host of a virtual machine, ignore namespaces.
_FAMILIES = (1, 2, 10, 16)
# Protocols: the family's default, TCP and UDP. Bytes of other protocols (UDP-Lite, SCTP, netlink between
# processes) would not be counted.
_PROTOCOLS = (0, 6, 17)
_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
_X32_BIT = 0x40000000
# CLONE_NEW* for mounts, host names, IPC, users, processes, networks and control groups.
_NEW_NAMESPACES = 0x7E020000

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2


def filter_program(metadata: bool = True) -> bytes:
    """Return the filter for this machine. Raise OSError if its architecture is not supported.

    metadata: whether processes may set owners, permissions and times of files.
    """
    if platform.machine() not in _ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no filter for {platform.machine()}")
    architecture, column = _ARCHITECTURES[platform.machine()]
    refuse = _ERRNO | errno.EPERM
    code = [
        (_LOAD, 0, 0, 4),
        # Calls have different numbers at the 32-bit entry point, so a process using it is killed.
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
    ]
    if column == 0:
        # x32 reports the architecture of x86_64 but numbers its calls differently, so the list would not
        # match them.
        code += [(_AT_LEAST, 0, 1, _X32_BIT), (_RETURN, 0, 0, refuse)]
    for numbers in (_REFUSED_CALLS if metadata else {**_REFUSED_CALLS, **_METADATA_CALLS}).values():
        if (number := numbers[column]) is not None:
            code += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, refuse)]
    # clone3 keeps its flags in memory, which a filter cannot read. After ENOSYS glibc falls back to clone.
    code += [(_EQUAL, 0, 1, _CLONE3[column]), (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]
    for numbers in _SELF_ONLY_CALLS.values():
        code += [
            (_EQUAL, 0, 4, numbers[column]),
            (_LOAD, 0, 0, 16),  # its first argument
            (_EQUAL, 1, 0, 0),
            (_RETURN, 0, 0, refuse),
            (_LOAD, 0, 0, 0),
        ]
    code += [
        (_EQUAL, 0, 4, _FCNTL[column]),
        (_LOAD, 0, 0, 24),  # its second argument
        (_EQUAL, 0, 1, _SETLEASE),
        (_RETURN, 0, 0, refuse),
        (_LOAD, 0, 0, 0),
    ]
    code += [
        (_EQUAL, 0, 4 + len(_FAMILIES) + len(_PROTOCOLS), _SOCKET[column]),
        (_LOAD, 0, 0, 16),
        *((_EQUAL, len(_FAMILIES) - at, 0, family) for at, family in enumerate(_FAMILIES)),
        (_RETURN, 0, 0, _ERRNO | errno.EAFNOSUPPORT),
        (_LOAD, 0, 0, 32),  # its third argument
        *((_EQUAL, len(_PROTOCOLS) - at, 0, one) for at, one in enumerate(_PROTOCOLS)),
        (_RETURN, 0, 0, _ERRNO | errno.EPROTONOSUPPORT),
        (_LOAD, 0, 0, 0),
    ]
    code += [
        (_EQUAL, 0, 3, _CLONE[column]),
        (_LOAD, 0, 0, 16),  # its first argument, the flags
        (_ANY_BIT, 0, 1, _NEW_NAMESPACES),
        (_RETURN, 0, 0, refuse),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("HBBI", *each) for each in code)


def install(metadata: bool = True) -> None:
    """Install the filter for this process and all its future children. Raise OSError if that fails."""
    program = filter_program(metadata)
    # The kernel accepts a filter from an unprivileged process only if the process can never gain
    # privileges. Otherwise a setuid program would run without calls that it relies on.
    prctl(NO_NEW_PRIVS, 1)
    buffer = ctypes.create_string_buffer(program)
    head = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.create_string_buffer(head))
