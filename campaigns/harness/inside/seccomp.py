"""A system call filter by hand: what a kernel never needs and a cheat might is refused with EPERM.

Chief among them ``sched_setaffinity`` (leaving the one core that is timed), ptrace and its kin, keyrings, bpf,
mounts and new namespaces. ``clone3`` answers ENOSYS, so that the C library uses ``clone``, whose flags can be read.
"""

from __future__ import annotations

import ctypes
import platform
import struct

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# (x86_64, aarch64); None where the architecture has no such call
DENIED: dict[str, tuple[int | None, int | None]] = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274), "setpriority": (141, 140), "add_key": (248, 217), "request_key": (249, 218),
    "keyctl": (250, 219), "bpf": (321, 280), "userfaultfd": (323, 282), "perf_event_open": (298, 241),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97),
    "setns": (308, 268), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsmount": (432, 432), "mount_setattr": (442, 442), "io_uring_setup": (425, 425), "memfd_create": (319, 279),
    "memfd_secret": (447, 447), "personality": (135, 92), "modify_ldt": (154, None), "swapon": (167, 224),
    "kexec_load": (246, 104), "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264), "quotactl": (179, 60), "acct": (163, 89),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "reboot": (169, 142), "shmget": (29, 194),
    "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
}  # fmt: skip
CLONE = (56, 220)
CLONE3 = (435, 435)
FORKS: tuple[tuple[int, int | None], ...] = ((57, None), (58, None))
"""fork and vfork."""
CLONE_THREAD = 0x00010000
NAMESPACE_FLAGS = 0x7E020080  # CLONE_NEWNS … CLONE_NEWNET, CLONE_NEWCGROUP, CLONE_NEWTIME
EPERM, ENOSYS = 1, 38
LD_W_ABS, JEQ, JGE, JSET, RET = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, ERRNO, KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
NR, ARCH, ARG0 = 0, 4, 16
PR_SET_SECCOMP, MODE_FILTER = 22, 2


def supported() -> bool:
    return platform.machine() in AUDIT_ARCH


def program(machine: str, alone: bool = False) -> list[bytes]:
    """The filter as ``struct sock_filter`` instructions. ``alone``: it starts no further process."""
    column = list(AUDIT_ARCH).index(machine)

    def op(code: int, jt: int, jf: int, k: int) -> bytes:
        return struct.pack("HBBI", code, jt, jf, k)

    code = [op(LD_W_ABS, 0, 0, ARCH), op(JEQ, 1, 0, AUDIT_ARCH[machine]), op(RET, 0, 0, KILL_PROCESS)]
    code.append(op(LD_W_ABS, 0, 0, NR))
    if machine == "x86_64":  # the x32 calls have numbers of their own
        code += [op(JGE, 0, 1, 0x40000000), op(RET, 0, 0, ERRNO | EPERM)]
    code += [op(JEQ, 0, 1, CLONE3[column]), op(RET, 0, 0, ERRNO | ENOSYS)]
    for numbers in DENIED.values():
        number = numbers[column]
        if number is not None:
            code += [op(JEQ, 0, 1, number), op(RET, 0, 0, ERRNO | EPERM)]
    if alone:
        for pair in FORKS:
            if (number := pair[column]) is not None:
                code += [op(JEQ, 0, 1, number), op(RET, 0, 0, ERRNO | EPERM)]
        code += [op(JEQ, 0, 3, CLONE[column]), op(LD_W_ABS, 0, 0, ARG0)]
        code += [op(JSET, 1, 0, CLONE_THREAD), op(RET, 0, 0, ERRNO | EPERM), op(LD_W_ABS, 0, 0, NR)]
    code += [op(JEQ, 0, 3, CLONE[column]), op(LD_W_ABS, 0, 0, ARG0)]
    code += [op(JSET, 0, 1, NAMESPACE_FLAGS), op(RET, 0, 0, ERRNO | EPERM)]
    return [*code, op(RET, 0, 0, ALLOW)]


def install(alone: bool = False) -> None:
    """Raises ``OSError`` where the kernel refuses. Needs PR_SET_NO_NEW_PRIVS."""
    code = program(platform.machine(), alone)
    text = ctypes.create_string_buffer(b"".join(code))
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code), ctypes.addressof(text)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_SECCOMP, MODE_FILTER, ctypes.c_void_p(ctypes.addressof(header)), 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp refused")
