"""A problem folder as data: read, checked, and every mistake named with its file and key. ``docs/problems.md`` is the format."""

from __future__ import annotations

import hashlib
import math
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from .errors import ProblemError
from .expressions import ExpressionError, evaluate

ITEMSIZE_BYTES = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1,
    "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "bool": 1,
}  # fmt: skip
TEXT_SUFFIXES = {".toml", ".py", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".md", ".txt", ".json"}
MAX_FILE_BYTES = 1 << 20
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class _Raw(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    pass


class TensorSpec(_Raw):
    name: str
    shape: list[int | str]
    dtype: str = "dtype"
    fixed: float = 0.0
    """Of an output: the share of values that are the same in every draw by design, such as a mask's zeros."""


class BaselineSpec(_Raw):
    file: str
    title: str = ""


class FloorSpec(_Raw):
    bytes: str | int | None = None
    flop: str | int | None = None


class Workload(_Raw):
    """One set of axes. ``dtype`` is empty until the problem's own is filled in."""

    name: str
    axes: dict[str, int]
    device: str = "cpu"
    hidden: bool = False
    dtype: str = ""
    timed: bool = True


class Problem(_Raw):
    name: str
    dtype: str
    axes: list[str]
    inputs: list[TensorSpec]
    outputs: list[TensorSpec]
    tolerance: dict[str, float]
    baselines: dict[str, BaselineSpec]
    workloads: list[Workload]
    title: str = ""
    summary: str = ""
    sweep: str | None = None
    floor: FloorSpec = msgspec.field(default_factory=FloorSpec)
    start: dict[str, str] = {}
    files: dict[str, str] = {}
    sha256: str = ""

    def shape(self, spec: TensorSpec, workload: Workload) -> tuple[int, ...]:
        return tuple(int(evaluate(str(entry), workload.axes)) for entry in spec.shape)

    def tensor_dtype(self, spec: TensorSpec, workload: Workload) -> str:
        return workload.dtype if spec.dtype == "dtype" else spec.dtype

    def tolerance_for(self, spec: TensorSpec, workload: Workload) -> float:
        """t of the error test. An output of whole numbers must be exact unless the problem says otherwise."""
        dtype = self.tensor_dtype(spec, workload)
        return self.tolerance.get(
            dtype, 0.0 if not dtype.startswith(("float", "bfloat")) else self.tolerance[workload.dtype]
        )

    def floor_value(self, kind: str, workload: Workload) -> float | None:
        """``bytes`` or ``flop`` of one call, or None where the problem says nothing."""
        text = getattr(self.floor, kind)
        names = {**workload.axes, "itemsize": ITEMSIZE_BYTES[workload.dtype]}
        return None if text is None else float(evaluate(str(text), names))

    def default_baseline(self) -> str:
        return next(iter(self.baselines))

    def workloads_on(self, device: str) -> list[Workload]:
        return [w for w in self.workloads if w.device == device]


MAX_AXIS = 1 << 40
"""Of an axis, and of the values of a tensor: a mistake, and no memory that there is."""


def files_sha256(files: Mapping[str, str]) -> str:
    """A hash over paths and texts, independent of their order."""
    digest = hashlib.sha256()
    for path in sorted(files):
        for part in (path.encode(errors="surrogatepass"), files[path].encode(errors="surrogatepass")):
            digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def read_folder(path: str | Path) -> dict[str, str]:
    """The text files of a folder, by relative POSIX path. Other kinds, hidden ones and caches are left out."""
    root = Path(path)
    if not root.is_dir():
        raise ProblemError(f"{root}: no such folder")
    files = {}
    for file in sorted(root.rglob("*")):
        relative = file.relative_to(root)
        skipped = any(part.startswith(".") or part == "__pycache__" for part in relative.parts)
        if skipped or file.suffix not in TEXT_SUFFIXES or not file.is_file() or file.is_symlink():
            continue
        if file.stat().st_size > MAX_FILE_BYTES:
            raise ProblemError(
                f"{relative}: {file.stat().st_size} bytes; a file of a problem has at most {MAX_FILE_BYTES}"
            )
        try:
            files[relative.as_posix()] = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise ProblemError(f"{relative}: not UTF-8 text") from None
    return files


_read_before: dict[str, Problem] = {}
MAX_REMEMBERED = 64
"""Problems that a process keeps by their hash: one page asks for the same ones dozens of times, and each takes 10 ms."""


def load_problem(files: dict[str, str]) -> Problem:
    """The problem that a folder's files say: one object for all who ask, to be read only. Raises ``ProblemError`` naming
    the file and the key."""
    if "problem.toml" not in files:
        raise ProblemError("problem.toml: missing. A problem is a folder with problem.toml, reference.py and inputs.py")
    sha256 = files_sha256(files)
    found = _read_before.get(sha256)
    if found is None:
        found = _read(files, sha256)
        if len(_read_before) >= MAX_REMEMBERED:
            _read_before.clear()
        _read_before[sha256] = found
    return found


def _read(files: dict[str, str], sha256: str) -> Problem:
    try:
        raw: dict[str, Any] = tomllib.loads(files["problem.toml"])
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ProblemError(f"problem.toml: {error}") from None
    for reserved in ("files", "sha256"):
        if reserved in raw:
            raise ProblemError(f"problem.toml: {reserved}: no such key")
    try:
        problem = msgspec.convert(raw, Problem)
    except msgspec.ValidationError as error:
        raise ProblemError(f"problem.toml: {error}") from None
    for workload in problem.workloads:
        workload.dtype = workload.dtype or problem.dtype
    problem.files = dict(files)
    problem.sha256 = sha256
    _check(problem)
    return problem


def _check(problem: Problem) -> None:
    _check_names(problem)
    _check_files(problem)
    for index, workload in enumerate(problem.workloads):
        _check_workload(problem, workload, f"workloads[{index}] ({workload.name})")


def _fail(key: str, what: str) -> None:
    raise ProblemError(f"problem.toml: {key}: {what}")


def _check_names(problem: Problem) -> None:
    for key in ("inputs", "outputs", "workloads", "baselines", "axes"):
        if not getattr(problem, key):
            _fail(key, "at least one is needed")
    names = problem.axes + [t.name for t in problem.inputs + problem.outputs]
    for name in names:
        if not _NAME.match(name):
            _fail(name, "not a name: letters, digits and underscores, not starting with a digit")
    for what, values in (("inputs, outputs and axes", names), ("workloads", [w.name for w in problem.workloads])):
        if twice := {v for v in values if values.count(v) > 1}:
            _fail(what, f"{', '.join(sorted(twice))} is there twice")
    if problem.sweep is not None and problem.sweep not in problem.axes:
        _fail("sweep", f"{problem.sweep!r} is no axis of {problem.axes}")


def _check_files(problem: Problem) -> None:
    named = {f"baselines.{k}.file": b.file for k, b in problem.baselines.items()}
    named |= {f"start.{k}": file for k, file in problem.start.items()}
    for key, file in named.items():
        if PurePosixPath(file).is_absolute() or ".." in PurePosixPath(file).parts:
            _fail(key, f"{file!r} must lie in the problem's folder")
        if file not in problem.files:
            _fail(key, f"there is no file {file!r} in the folder")
    for file, function in (("reference.py", "reference"), ("inputs.py", "make_inputs")):
        if file not in problem.files:
            raise ProblemError(f"{file}: missing. It must define {function}(…); see docs/problems.md")
        if not re.search(rf"^def {function}\(", problem.files[file], re.MULTILINE):
            raise ProblemError(f"{file}: defines no function {function}(…) at its top level; see docs/problems.md")


def _check_workload(problem: Problem, workload: Workload, key: str) -> None:
    if set(workload.axes) != set(problem.axes):
        _fail(f"{key}.axes", f"has {sorted(workload.axes)}, needs {sorted(problem.axes)}")
    if any(value < 1 for value in workload.axes.values()):
        _fail(f"{key}.axes", "an axis is at least 1")
    if any(value > MAX_AXIS for value in workload.axes.values()):
        _fail(f"{key}.axes", f"an axis is at most {MAX_AXIS:,}")
    if workload.device not in ("cpu", "cuda"):
        _fail(f"{key}.device", f"{workload.device!r} is neither cpu nor cuda")
    if workload.dtype not in ITEMSIZE_BYTES:
        _fail(f"{key}.dtype", f"{workload.dtype!r} is none of {', '.join(ITEMSIZE_BYTES)}")
    if not 0 < problem.tolerance.get(workload.dtype, 0) < 1:
        _fail(f"tolerance.{workload.dtype}", f"workload {workload.name} needs a number between 0 and 1 here")
    try:
        for spec in problem.inputs + problem.outputs:
            if problem.tensor_dtype(spec, workload) not in ITEMSIZE_BYTES:
                _fail(spec.name, f"dtype {spec.dtype!r} is none of {', '.join(ITEMSIZE_BYTES)}")
            if min(problem.shape(spec, workload), default=1) < 1:
                _fail(spec.name, f"shape {problem.shape(spec, workload)} at workload {workload.name}: below 1")
            if math.prod(problem.shape(spec, workload)) > MAX_AXIS:
                _fail(spec.name, f"more than {MAX_AXIS:,} values at workload {workload.name}")
        problem.floor_value("bytes", workload)
        problem.floor_value("flop", workload)
    except ExpressionError as error:
        _fail(key, str(error))
