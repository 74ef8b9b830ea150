"""What a built library asks the loader for: the names behind the names in its source.

``#define``, ``##``, ``weakref``, ``redefine_extname`` and labels in assembler all give a function another name for those who
read the source. The loader is told the true one.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping

from ..report import Finding
from .cpp import CALLS

MORE: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("_Fork", "posix_spawnp", "execle", "execlp", "execvpe", "fexecve", "daemon"), ("process", "starts a process")),
    **dict.fromkeys(
        ("dlvsym", "dladdr", "dladdr1", "dlinfo", "_r_debug", "_rtld_global", "_dl_sym"),
        ("loading", "loads or looks up other code"),
    ),
    **dict.fromkeys(("timer_settime", "timerfd_create", "ualarm"), ("signals", "works by signals or timers")),
    **dict.fromkeys(("pthread_setname_np", "pthread_kill"), ("threads", "reaches for threads")),
}  # fmt: skip
PREFIXES: tuple[tuple[str, tuple[str, str]], ...] = (
    ("_ZNSt6thread", ("threads", "starts a thread")),
    ("_ZNSt14basic_ofstream", ("files", "reaches for files")),
    ("_ZNSt14basic_ifstream", ("files", "reaches for files")),
    ("_ZNSt13basic_fstream", ("files", "reaches for files")),
    ("_ZNSt13basic_filebuf", ("files", "reaches for files")),
    ("_ZNSt10filesystem", ("files", "reaches for files")),
    ("Py", ("harness", "calls into the interpreter that runs it")),
    ("_Py", ("harness", "calls into the interpreter that runs it")),
)
_VARIANT = re.compile(r"^_{0,2}(\w+?)(?:64)?(?:_2)?$")
"""``__open_2``, ``fopen64``, ``__sigaction``: spellings that the C library's headers turn a name into."""
PT_LOAD, PT_DYNAMIC = 1, 2
DT_STRTAB, DT_SYMTAB, DT_RELA, DT_RELASZ, DT_JMPREL, DT_PLTRELSZ = 5, 6, 7, 8, 23, 2
RELA_BYTES, SYMBOL_BYTES = 24, 24
ELF64_LITTLE = b"\x7fELF\x02\x01"


def scan_linked(library: bytes) -> list[Finding]:
    """A blocking finding for each name that no kernel needs. One that cannot be read is blocked, too."""
    try:
        names = sorted(imported(library))
    except (struct.error, ValueError, LookupError, OverflowError):
        text = "the built library cannot be read: what it asks the loader for is not known"
        return [Finding(rule="unreadable", severity="block", evidence=text)]
    found: list[Finding] = []
    for name in names:
        if (hit := meaning(name)) is not None:
            text = f"the built library asks the loader for {name[:80]}: it {hit[1]}, and its source has another name for it"
            found.append(Finding(rule=hit[0], severity="block", evidence=text))
    return found


def meaning(name: str) -> tuple[str, str] | None:
    for table in (CALLS, MORE):
        for each in (name, _VARIANT.sub(r"\1", name)):
            if each in table:
                return table[each]
    return next((hit for prefix, hit in PREFIXES if name.startswith(prefix)), None)


def imported(library: bytes) -> set[str]:
    """The names that its relocations leave to the loader (ELF, 64 bits, little-endian). Raises ``ValueError``,
    ``struct.error``, ``LookupError`` or ``OverflowError`` for another file."""
    if not library.startswith(ELF64_LITTLE):
        raise ValueError("no 64-bit little-endian ELF file")
    segments = list(_segments(library))
    dynamic = {}
    for kind, offset, _, size in segments:
        if kind == PT_DYNAMIC:
            dynamic = dict(struct.iter_unpack("<qQ", library[offset : offset + size - size % 16]))
    strings, symbols = _offset(segments, dynamic[DT_STRTAB]), _offset(segments, dynamic[DT_SYMTAB])
    found = set()
    for index in set(_symbols(library, segments, dynamic)):
        name, _, _, section, _, _ = struct.unpack_from("<IBBHQQ", library, symbols + index * SYMBOL_BYTES)
        if section == 0:
            start = strings + name
            found.add(library[start : library.index(b"\0", start)].decode(errors="replace"))
    return found - {""}


def _segments(library: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Kind, offset in the file, address, bytes in the file."""
    (first,) = struct.unpack_from("<Q", library, 32)
    size, count = struct.unpack_from("<HH", library, 54)
    for i in range(count):
        kind, _, offset, address, _, nbytes, _, _ = struct.unpack_from("<IIQQQQQQ", library, first + i * size)
        yield kind, offset, address, nbytes


def _offset(segments: list[tuple[int, int, int, int]], address: int) -> int:
    for kind, offset, start, size in segments:
        if kind == PT_LOAD and start <= address < start + size:
            return offset + address - start
    raise ValueError("an address outside every segment")


def _symbols(library: bytes, segments: list[tuple[int, int, int, int]], dynamic: Mapping[int, int]) -> Iterator[int]:
    """The numbers of the symbols that its relocations name."""
    for table, length in ((DT_RELA, DT_RELASZ), (DT_JMPREL, DT_PLTRELSZ)):
        if table in dynamic:
            start = _offset(segments, dynamic[table])
            for at in range(start, start + dynamic[length], RELA_BYTES):
                (info,) = struct.unpack_from("<Q", library, at + 8)
                yield info >> 32
