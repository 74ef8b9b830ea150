"""Candidates as files: loading, hashing, and the tunable parameters that their sources declare."""

from __future__ import annotations

import hashlib
import io
import re
import tokenize
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import msgspec

from .cpp_tokens import tokens as cpp_tokens
from .errors import CandidateError
from .problem import Problem, files_sha256
from .request import CandidateSource

ENTRY = {"cpp": "kernel.cpp", "cuda": "kernel.cu", "torch": "kernel.py", "triton": "kernel.py", "cutedsl": "kernel.py"}
SUFFIXES = {".cpp", ".cu", ".cuh", ".h", ".hpp", ".py"}
MAX_SOURCE_BYTES = 1 << 20
MAX_FILES = 256
"""Of one candidate. Each is laid into its sandbox by itself."""
MAX_NAME_BYTES, MAX_PATH_BYTES = 200, 400
"""Of one part of a path (file systems hold 255), and of all of it."""
_COMMENT = re.compile(r"(?://|#)\s*tunable:")
_NAME = re.compile(r"\b(?P<name>[A-Za-z_]\w*)(?:\s*:\s*[\w.]+)?\s*\Z")


class Tunable(msgspec.Struct, frozen=True, kw_only=True):
    """One declared parameter. Values are kept as written in the source (``"1024"``, ``"true"``)."""

    name: str
    value: str
    choices: list[str]
    path: str
    line: int


def load_candidate(path: str | Path, backend: str | None = None) -> CandidateSource:
    """A candidate from a file or a folder. Raises ``CandidateError`` with what is wrong and what to do."""
    where = Path(path)
    if where.is_file():
        files = {where.name: _read(where)}
    elif where.is_dir():
        paths = [p for p in sorted(where.rglob("*")) if p.suffix in SUFFIXES and p.is_file() and not p.is_symlink()]
        files = {p.relative_to(where).as_posix(): _read(p) for p in paths if "__pycache__" not in p.parts}
    else:
        raise CandidateError(f"{where}: no such file or folder")
    if not files:
        raise CandidateError(f"{where}: holds no source file ({', '.join(sorted(SUFFIXES))})")
    backend = backend or guess_backend(files)
    if backend not in ENTRY:
        raise CandidateError(f"unknown backend {backend!r}: one of {', '.join(ENTRY)}")
    source = CandidateSource(backend=backend, files=files)
    entry_path(source)
    return source


def starts(problem: Problem) -> dict[str, str]:
    """Backend of a campaign → the backend of the kernel that it starts from.

    Its own start kernel where the problem has one. The others begin from the PyTorch one, or else from the first: what is
    to be beaten is then written in another language than what is asked for.
    """
    first = "torch" if "torch" in problem.start else next(iter(problem.start), "")
    others = {backend: first for backend in ENTRY if first and backend not in problem.start}
    return {backend: backend for backend in problem.start} | others


def _read(path: Path) -> str:
    if path.stat().st_size > MAX_SOURCE_BYTES:
        raise CandidateError(f"{path}: {path.stat().st_size} bytes of source; at most {MAX_SOURCE_BYTES} are taken")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise CandidateError(f"{path}: not UTF-8 text") from None
    except OSError as error:
        raise CandidateError(f"{path}: {error.strerror}") from None


def guess_backend(files: Mapping[str, str]) -> str:
    """The backend by suffix: .cpp, .cu; a Python file is ``triton`` when it uses it, ``cutedsl`` when cutlass."""
    suffixes = {Path(name).suffix for name in files}
    if ".cu" in suffixes:
        return "cuda"
    if ".cpp" in suffixes:
        return "cpp"
    text = "\n".join(files[name] for name in files if name.endswith(".py"))
    if re.search(r"^\s*import\s+cutlass|^\s*from\s+cutlass\b", text, re.MULTILINE):
        return "cutedsl"
    if re.search(r"\btriton\.(?:jit|language|autotune)\b|^\s*from\s+triton\b", text, re.MULTILINE):
        return "triton"
    if ".py" in suffixes:
        return "torch"
    raise CandidateError("no .py, .cpp or .cu file among the sources: name the backend")


def entry_path(source: CandidateSource) -> str:
    """The path of the file that holds ``run``."""
    entry = ENTRY.get(source.backend)
    if entry is None:
        raise CandidateError(f"unknown backend {source.backend!r}: one of {', '.join(ENTRY)}")
    if len(source.files) > MAX_FILES:
        raise CandidateError(f"{len(source.files)} source files; at most {MAX_FILES} are taken")
    for path, text in source.files.items():
        check_path(path)
        if any("\ud800" <= c <= "\udfff" for c in text):
            raise CandidateError(f"{path!a}: not UTF-8 text")
    if folders := {str(parent) for path in source.files for parent in PurePosixPath(path).parents} & set(source.files):
        raise CandidateError(f"{min(folders)}: both a source file and a folder of others")
    if entry in source.files:
        return entry
    same = [p for p in source.files if Path(p).suffix == Path(entry).suffix]
    if len(same) == 1:
        return same[0]
    raise CandidateError(
        f"backend {source.backend} needs one {entry}; there are {', '.join(source.files) or 'no files'}"
    )


def check_path(path: str) -> None:
    """Raises ``CandidateError`` for a path that is not plain, relative and inside its folder."""
    parts = path.split("/")
    if path.startswith("/") or ".." in parts or "\\" in path or "\0" in path:
        raise CandidateError(f"{path!r}: a source path is relative and stays in its folder")
    if not path.isprintable() or "" in parts or "." in parts:
        raise CandidateError(f"{path!a}: a source path has plain parts, and no characters that are not shown")
    if any(len(part.encode()) > MAX_NAME_BYTES for part in parts) or len(path.encode()) > MAX_PATH_BYTES:
        limits = f"at most {MAX_NAME_BYTES} bytes, and its names {MAX_PATH_BYTES} together"
        raise CandidateError(f"{path[:80]}…: a name in a source path has {limits}")


def sha256(source: CandidateSource) -> str:
    return files_sha256({**source.files, "\0backend": source.backend})


def normalised_sha256(source: CandidateSource) -> str:
    """A hash that comments and white space do not change: two candidates with the same one are the same program."""
    return files_sha256({path: _normalised(path, text) for path, text in source.files.items()})


def _normalised(path: str, text: str) -> str:
    return _normalised_python(text) if path.endswith(".py") else " ".join(t.text for t in cpp_tokens(text))


def _normalised_python(text: str) -> str:
    dropped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    kinds = {tokenize.NEWLINE: "\n", tokenize.INDENT: "{", tokenize.DEDENT: "}"}
    parts = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in kinds:
                parts.append(kinds[token.type])
            elif token.type not in dropped:
                parts.append(token.string)
    except (tokenize.TokenError, SyntaxError):
        return hashlib.sha256(text.encode()).hexdigest()
    return " ".join(parts)


def tunables(source: CandidateSource) -> list[Tunable]:
    """The parameters declared in the sources, in the order of their lines. Raises ``CandidateError`` for a wrong one."""
    found: dict[str, Tunable] = {}
    for path in sorted(source.files, key=lambda p: (p != entry_path(source), p)):
        for number, line in enumerate(source.files[path].split("\n"), 1):
            declared = _declared(line)
            if declared is None:
                continue
            choices = [c.strip() for c in declared.choices.split(",") if c.strip()]
            if declared.value not in choices:
                raise CandidateError(
                    f"{path}:{number}: {declared.name} = {declared.value} is not among its choices {choices}"
                )
            if declared.name in found:
                raise CandidateError(f"{path}:{number}: tunable {declared.name} is declared twice")
            found[declared.name] = Tunable(
                name=declared.name, value=declared.value, choices=choices, path=path, line=number
            )
    return list(found.values())


class _Declared(NamedTuple):
    """A line ``head value tail``."""

    head: str
    name: str
    value: str
    tail: str
    choices: str


def _declared(line: str) -> _Declared | None:
    """``constexpr int A = 4;  // tunable: 2, 4``: what stands where. In steps that each take time in proportion to the
    line: it comes from anybody."""
    comment = _COMMENT.search(line) if "tunable:" in line else None
    if comment is None:
        return None
    before, tail = line[: comment.start()], line[comment.start() :]
    code = before.rstrip().removesuffix(";").rstrip()
    left, equals, value = code.rpartition("=")
    name = _NAME.search(left)
    choices = line[comment.end() :].strip()
    if not (equals and name and value.strip() and choices) or {";", "#"} & set(value) or "#" in left:
        return None
    head = line[: len(left) + 1 + len(value) - len(value.lstrip())]
    return _Declared(head, name["name"], value.strip(), before[len(code) :] + tail, choices)


def with_values(source: CandidateSource, values: Mapping[str, object]) -> CandidateSource:
    """The same source with other values of its tunables, and nothing else changed. Values must be among the choices."""
    declared = {t.name: t for t in tunables(source)}
    wanted = {name: _spelling(value) for name, value in values.items()}
    for name, value in wanted.items():
        if name not in declared:
            raise CandidateError(f"no tunable {name!r}: there are {', '.join(declared) or 'none'}")
        if value not in declared[name].choices:
            raise CandidateError(f"{name} = {value}: not among its choices {declared[name].choices}")

    def rewritten(line: str) -> str:
        found = _declared(line)
        return f"{found.head}{wanted.get(found.name, found.value)}{found.tail}" if found else line

    files = {path: "\n".join(map(rewritten, text.split("\n"))) for path, text in source.files.items()}
    return CandidateSource(backend=source.backend, files=files)


def _spelling(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
