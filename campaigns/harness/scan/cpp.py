"""The scan of C++ and CUDA sources, on tokens: names in comments and strings, members and own functions don't count."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..cpp_tokens import Token, tokens
from ..report import Finding, Severity
from .effort import TooInvolved

CALLS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("system", "popen", "execl", "execv", "execve", "execvp", "posix_spawn"), ("process", "runs a program")),
    **dict.fromkeys(("fork", "vfork", "clone", "clone3"), ("process", "starts a process")),
    **dict.fromkeys(("kill", "tgkill", "killpg", "ptrace"), ("process", "reaches for other processes")),
    **dict.fromkeys(("exit", "_exit", "_Exit", "quick_exit"), ("process", "ends the process that is measured")),
    **dict.fromkeys(("pthread_create", "thrd_create", "cudaLaunchHostFunc"), ("threads", "starts a thread")),
    **dict.fromkeys(
        ("sched_setaffinity", "pthread_setaffinity_np", "sched_setscheduler", "setpriority", "nice"),
        ("threads", "changes how it is scheduled"),
    ),
    **dict.fromkeys(("socket", "connect", "bind", "listen", "sendto", "getaddrinfo"), ("network", "opens a connection")),
    **dict.fromkeys(
        ("fopen", "freopen", "fdopen", "open", "openat", "creat", "shm_open", "memfd_create", "opendir", "unlink"),
        ("files", "reaches for files"),
    ),
    **dict.fromkeys(("dlopen", "dlsym", "dlmopen", "dl_iterate_phdr"), ("loading", "loads or looks up other code")),
    **dict.fromkeys(("syscall", "prctl", "seccomp", "mprotect", "process_vm_readv"), ("syscall", "talks to the kernel")),
    **dict.fromkeys(
        ("sigset", "ssignal", "bsd_signal", "sysv_signal", "__sysv_signal", "__sigaction"),
        ("signals", "works by signals or timers"),
    ),
    **dict.fromkeys(("signal", "sigaction", "setitimer", "timer_create", "alarm"), ("signals", "works by signals or timers")),
}  # fmt: skip
OF_THE_C_LIBRARY = {
    "clock_gettime",
    "gettimeofday",
    "nanosleep",
    "clock_nanosleep",
    "recvmsg",
    "sendmsg",
    "mmap",
    "munmap",
}
"""What a runner's loop asks of the C library: a candidate that defines one of these wants to be asked in its place."""
ARITHMETIC = {
    *("_mm_setcsr", "__builtin_ia32_ldmxcsr", "_MM_SET_FLUSH_ZERO_MODE", "_MM_SET_DENORMALS_ZERO_MODE", "_MM_SET_ROUNDING_MODE"),
    *("fesetround", "fesetenv", "feupdateenv"),
}  # fmt: skip
"""They change how everything after them in the process rounds; who sets it and sets it back calls one of them twice."""
STD_TYPES = {
    "thread": ("threads", "starts a thread"),
    "jthread": ("threads", "starts a thread"),
    "async": ("threads", "starts a thread"),
    "ifstream": ("files", "reaches for files"),
    "ofstream": ("files", "reaches for files"),
    "fstream": ("files", "reaches for files"),
    "filesystem": ("files", "reaches for files"),
}
STD_CALLS = {"system", "exit", "_Exit", "quick_exit", "signal", "fopen", "freopen"}
"""Of the names in ``CALLS``, those that the standard library has in its namespace: ``std::bind`` is another thing."""
EARLY = (".init_array", ".fini_array", ".preinit_array", ".ctors", ".dtors", ".init", ".fini")
MOST_TOKENS = 400_000
"""Of one file. A mebibyte of ordinary source has some 250,000."""
_EARLY_SECTION = re.compile(r"section\s*\W{0,4}\.(?:init|fini|preinit|ctors|dtors)")
HEADERS = {"thread", "future", "pthread.h", "omp.h", "dlfcn.h", "sys/socket.h", "fstream", "filesystem", "unistd.h"}
STATEMENTS = {"return", "else", "do", "case", "throw", "co_return", "and", "or", "not"}
MAPS = {"map", "unordered_map", "set", "unordered_set"}
INTERPRETER = re.compile(r"_?Py(?:[A-Z]\w*)?_\w+|Py_\w+")
AFTER_PARAMETERS = {"const", "noexcept", "override"}


def scan_cpp(path: str, text: str) -> list[Finding]:
    code = list(tokens(text))
    if len(code) > MOST_TOKENS:
        raise TooInvolved
    closing = _closing(code)
    defined = [code[i] for i in range(len(code)) if _is_definition(code, i, closing)]
    own = {token.text for token in defined} | _variables(code, closing)
    found = [
        *_directives(path, code),
        *_assembly(path, code, closing),
        *_attributes(path, code, closing),
        *_state(path, code),
        *_arithmetic(path, code),
    ]
    for token in defined:
        if token.text in OF_THE_C_LIBRARY:
            told = f"{token.text}: it puts a function in the C library's place"
            found.append(_finding("patching", "block", told, path, token))
    for i, token in enumerate(code):
        if token.kind != "name":
            continue
        if hit := _forbidden(code, i, own) or _handed_on(code, i, own):
            found.append(_finding(hit[0], "block", f"{token.text[:80]}: it {hit[1]}", path, token))
    return found


def _finding(rule: str, severity: Severity, evidence: str, path: str, token: Token) -> Finding:
    return Finding(rule=rule, severity=severity, evidence=evidence, path=path, line=token.line)


def _text(code: list[Token], i: int) -> str:
    return code[i].text if 0 <= i < len(code) else ""


def _closing(code: list[Token]) -> dict[int, int]:
    """By the index of each opening parenthesis, that of the one that closes it; the end where none does."""
    found, opened = {}, []
    for j, token in enumerate(code):
        if token.text == "(":
            opened.append(j)
        elif token.text == ")" and opened:
            found[opened.pop()] = j
    return {**found, **dict.fromkeys(opened, len(code))}


def _is_definition(code: list[Token], i: int, closing: dict[int, int]) -> bool:
    """Whether a function of that name is defined, body and all: then calls of it are the candidate's own business."""
    if code[i].kind != "name" or _text(code, i + 1) != "(" or not _follows_type(code, i):
        return False
    end = closing[i + 1] + 1
    while _text(code, end) in AFTER_PARAMETERS:
        end += 1
    return _text(code, end) == "{"


def _follows_type(code: list[Token], i: int) -> bool:
    before = code[i - 1] if i else None
    if before is None:
        return False
    return (before.kind == "name" and before.text not in STATEMENTS) or before.text in ("*", "&", ">")


def _forbidden(code: list[Token], i: int, own: set[str]) -> tuple[str, str] | None:
    name, before, after = code[i].text, _text(code, i - 1), _text(code, i + 1)
    if before in (".", "->"):
        return None
    if before == "::":
        scope = _text(code, i - 2)
        if scope == "std" and name in STD_TYPES and not (name == "thread" and after == "::"):
            return STD_TYPES[name]
        if scope not in ("std", "") and code[i - 2].kind == "name" and scope not in STATEMENTS:
            return None
        known = name in CALLS and (scope != "std" or name in STD_CALLS)
        return CALLS[name] if known and after == "(" else None
    if INTERPRETER.fullmatch(name) and name not in own:
        return "harness", "calls into the interpreter that runs it"
    if name not in CALLS or name in own:
        return None
    if after == "(":
        # A name before it makes it a declaration (`void open(…);`): what counts is whether somebody calls it.
        declares = i > 0 and code[i - 1].kind == "name" and before not in STATEMENTS
        return None if declares else CALLS[name]
    return CALLS[name] if before == "&" and _text(code, i - 2) in ("=", "(", ",", "return") else None


def _handed_on(code: list[Token], i: int, own: set[str]) -> tuple[str, str] | None:
    """A function that is not called here but kept under another name: ``auto f = fork;``."""
    name, before, after = code[i].text, _text(code, i - 1), _text(code, i + 1)
    if name not in CALLS or name in own or after not in (";", ",", ")", "}"):
        return None
    return CALLS[name] if before in ("=", "{", "return", "?", ":") else None


def _variables(code: list[Token], closing: dict[int, int]) -> set[str]:
    """Names of ``CALLS`` that are variables, parameters or members here: ``float alarm;``, ``auto open = […]``.

    None that is declared as a function, too: then both are meant.
    """
    variables, functions = set(), set()
    for i, token in enumerate(code):
        start = i
        while _text(code, start - 1) in ("*", "&"):
            start -= 1
        if token.text not in CALLS or not _follows_type(code, start):
            continue
        after = _text(code, i + 1)
        if after == "(" and _text(code, closing[i + 1] + 1) == ";":
            functions.add(token.text)
        elif after in ("=", ";", ",", ")", "{", "[", ":"):
            variables.add(token.text)
    return variables - functions


def _directives(path: str, code: list[Token]) -> Iterator[Finding]:
    for i, token in enumerate(code):
        if token.text not in ("#", "%:"):
            continue
        word, rest = _text(code, i + 1), [t.text for t in code[i + 2 : i + 12] if t.line == token.line]
        if word == "include":
            name = "".join(rest).strip('<>"')
            if name.startswith(("/", "..")) or "/../" in name:
                yield _finding("files", "block", f"includes a file from outside its folder: {name[:80]}", path, token)
            elif name.endswith(".py"):
                told = f"includes {name[:80]}, which looks like another language and is compiled"
                yield _finding("hidden-source", "block", told, path, token)
            elif rest and rest[0][:1] not in ('"', "<"):
                yield _finding("files", "warning", f"includes a file that a macro names: {name[:80]}", path, token)
            elif name in HEADERS:
                yield _finding("header", "note", f"includes <{name}>", path, token)
        elif word == "embed":
            yield _finding("files", "block", "embeds a file", path, token)
        elif word == "pragma" and rest[:1] == ["omp"] and {"parallel", "task", "sections", "target"} & set(rest):
            yield _finding("threads", "block", "asks OpenMP for threads: one core is timed", path, token)


def _assembly(path: str, code: list[Token], closing: dict[int, int]) -> Iterator[Finding]:
    i = 0
    while i < len(code):
        token, i = code[i], i + 1
        if token.kind != "name" or token.text not in ("asm", "__asm__", "__asm"):
            continue
        start = next((j for j in range(i, min(i + 3, len(code))) if code[j].text == "("), i)
        end = closing.get(start, start)
        body = _spoken(code[start:end])
        i = max(i, end)
        if any(word in body for word in ("syscall", "sysenter", "int $0x80", "svc", ".incbin", ".include")):
            yield _finding("syscall", "block", "assembly that calls the kernel or includes a file", path, token)
        elif _EARLY_SECTION.search(body):
            yield _finding(
                "loading", "block", "assembly that runs code when it is loaded, before any call", path, token
            )
        elif re.search(r"\.(?:byte|short|hword|word|value|long|int|quad|octa|ascii|asciz|string)\b", body):
            yield _finding("assembly", "warning", "inline assembly in numbers, which cannot be read", path, token)
        else:
            yield _finding("assembly", "note", "inline assembly", path, token)


def _spoken(code: list[Token]) -> str:
    """What string literals say: neighbours are one string, and escapes are what they stand for."""
    parts = []
    for i, token in enumerate(code):
        if token.kind == "string":
            parts.append("" if i and code[i - 1].kind == "string" else " ")
            parts.append(_ESCAPE.sub(_unescaped, token.text.partition('"')[2].rpartition('"')[0]))
    return "".join(parts).lower()


_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]+)|u([0-9a-fA-F]{4})|([0-7]{1,3})|.)", re.DOTALL)


def _unescaped(match: re.Match[str]) -> str:
    sixteen, eight = match[1] or match[2], match[3]
    if sixteen or eight:
        value = int(sixteen, 16) if sixteen else int(eight, 8)
        return chr(value) if value < 0xD800 else "?"
    return " " if match[0][1] in "ntrvf" else match[0][1]


def _attributes(path: str, code: list[Token], closing: dict[int, int]) -> Iterator[Finding]:
    for i, token in enumerate(code):
        if token.kind == "name" and token.text in ("__attribute__", "__attribute") and _text(code, i + 1) == "(":
            inside = code[i + 1 : closing[i + 1]]
        elif token.text == "[" and _text(code, i + 1) == "[":
            inside = code[i + 2 : i + 66]
            ends = next((j for j, t in enumerate(inside) if t.text == "]"), len(inside))
            inside = inside[:ends]
        else:
            continue
        words = {t.text.strip("_") for t in inside if t.kind == "name"}
        if words & {"constructor", "destructor", "ifunc"} or any(
            _spoken([t]).strip().startswith(EARLY) for t in inside if t.kind == "string"
        ):
            yield _finding("loading", "block", "runs code when it is loaded, before any call", path, token)
            return


def _arithmetic(path: str, code: list[Token]) -> Iterator[Finding]:
    calls = [t for i, t in enumerate(code) if t.text in ARITHMETIC and _text(code, i + 1) == "("]
    if len(calls) == 1:
        told = f"{calls[0].text}: changes how its caller's arithmetic rounds, and does not set it back"
        yield _finding("global-state", "warning", told, path, calls[0])


def _state(path: str, code: list[Token]) -> Iterator[Finding]:
    """Variables that live from call to call. Honest kernels keep scratch memory so; caches of answers look the same."""
    for i, token in enumerate(code):
        if token.text not in ("static", "thread_local") or token.kind != "name":
            continue
        declared: list[str] = []
        for following in code[i + 1 : i + 40]:
            if following.text in (";", "=", "(", "{"):
                break
            declared.append(following.text)
        if following.text == "(" or {"const", "constexpr", "inline"} & set(declared) or not declared:
            continue
        if MAPS & set(declared):
            yield _finding("state", "warning", "keeps a table from call to call", path, token)
        else:
            yield _finding("state", "note", f"keeps {_variable(declared)} from call to call", path, token)


def _variable(declared: list[str]) -> str:
    """The name in ``float buffer[4]``."""
    before = declared[: declared.index("[")] if "[" in declared[1:] else declared
    return (before[-1] if before else declared[-1])[:80]
