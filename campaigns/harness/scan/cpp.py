"""The scan of C++ and CUDA sources, on tokens: names in comments and strings, members and own functions don't count."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..cpp_tokens import Token, tokens
from ..report import Finding, Severity

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
STD_TYPES = {
    "thread": ("threads", "starts a thread"),
    "jthread": ("threads", "starts a thread"),
    "async": ("threads", "starts a thread"),
    "ifstream": ("files", "reaches for files"),
    "ofstream": ("files", "reaches for files"),
    "fstream": ("files", "reaches for files"),
    "filesystem": ("files", "reaches for files"),
}
HEADERS = {"thread", "future", "pthread.h", "omp.h", "dlfcn.h", "sys/socket.h", "fstream", "filesystem", "unistd.h"}
STATEMENTS = {"return", "else", "do", "case", "throw", "co_return", "and", "or", "not"}
MAPS = {"map", "unordered_map", "set", "unordered_set"}
INTERPRETER = re.compile(r"_?Py(?:[A-Z]\w*)?_\w+|Py_\w+")
AFTER_PARAMETERS = {"const", "noexcept", "override"}


def scan_cpp(path: str, text: str) -> list[Finding]:
    code = list(tokens(text))
    closing = _closing(code)
    own = {code[i].text for i in range(len(code)) if _is_definition(code, i, closing)}
    found = [*_directives(path, code), *_assembly(path, code, closing), *_attributes(path, code), *_state(path, code)]
    for i, token in enumerate(code):
        if token.kind != "name":
            continue
        if hit := _forbidden(code, i, own):
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
        return CALLS.get(name) if after == "(" else None
    if INTERPRETER.fullmatch(name) and name not in own:
        return "harness", "calls into the interpreter that runs it"
    if name not in CALLS or name in own:
        return None
    if after == "(":
        # A name before it makes it a declaration (`void open(…);`): what counts is whether somebody calls it.
        declares = i > 0 and code[i - 1].kind == "name" and before not in STATEMENTS
        return None if declares else CALLS[name]
    return CALLS[name] if before == "&" and _text(code, i - 2) in ("=", "(", ",", "return") else None


def _directives(path: str, code: list[Token]) -> Iterator[Finding]:
    for i, token in enumerate(code):
        if token.text != "#":
            continue
        word, rest = _text(code, i + 1), [t.text for t in code[i + 2 : i + 12] if t.line == token.line]
        if word == "include":
            name = "".join(rest).strip('<>"')
            if name.startswith(("/", "..")) or "/../" in name:
                yield _finding("files", "block", f"includes a file from outside its folder: {name[:80]}", path, token)
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
        body = " ".join(t.text.lower() for t in code[start:end] if t.kind == "string")
        i = max(i, end)
        if any(word in body for word in ("syscall", "sysenter", "int $0x80", "svc", ".incbin", ".include")):
            yield _finding("syscall", "block", "assembly that calls the kernel or includes a file", path, token)
        else:
            yield _finding("assembly", "note", "inline assembly", path, token)


def _attributes(path: str, code: list[Token]) -> Iterator[Finding]:
    for i, token in enumerate(code):
        if token.text in ("__attribute__", "[") and token.kind in ("name", "op"):
            words = {t.text for t in code[i : i + 8]}
            if words & {"constructor", "destructor"} and (token.text != "[" or _text(code, i + 1) == "["):
                yield _finding("loading", "block", "runs code when it is loaded, before any call", path, token)
                return


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
