"""When two sources are the same program: whatever their comments, layout, names of their own, docstrings and spelling of
numbers are. Nothing else is looked through: two programs that differ in what they do never get the same hash.
"""

from __future__ import annotations

import ast
import hashlib
import re
from pathlib import PurePosixPath

from campaigns.harness.candidate import entry_path, tunables, with_values
from campaigns.harness.cpp_tokens import Token, tokens
from campaigns.harness.errors import CandidateError
from campaigns.harness.problem import files_sha256
from campaigns.harness.request import CandidateSource


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


TYPES = words(
    "void bool char short int long float double unsigned signed auto size_t ptrdiff_t half __half __nv_bfloat16 bfloat16 "
    "float2 float4 int2 int4 uint2 uint4 half2 __half2 class typename struct enum namespace"
)
NOT_TYPES = words(
    "return throw new delete else case goto typedef using operator sizeof alignof co_return co_await co_yield not and or "
    "if while for switch do"
)
AFTER_A_NAME = words("= ; , ) [ { ( : > ...")


def canonical_sha256(source: CandidateSource) -> str:
    """The same for two sources only if they are the same program in the same backend. The entry file may have any name."""
    try:
        entry = entry_path(source)
    except CandidateError:
        entry = ""
    files = {"\0entry" if path == entry else path: canonical(path, text) for path, text in source.files.items()}
    return files_sha256({**files, "\0backend": source.backend})


def structure_sha256(source: CandidateSource) -> str:
    """The same for all points of one program's tunable parameters."""
    try:
        first = {t.name: t.choices[0] for t in tunables(source)}
        return canonical_sha256(with_values(source, first)) if first else canonical_sha256(source)
    except CandidateError:
        return canonical_sha256(source)


def canonical(path: str, text: str) -> str:
    return canonical_python(text) if PurePosixPath(path).suffix == ".py" else canonical_cpp(text)


def canonical_python(text: str) -> str:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "unparsed " + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    try:
        return ast.dump(Renamer(tree).visit(tree), annotate_fields=False)
    except RecursionError:
        return "deep " + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Renamer(ast.NodeTransformer):
    """Gives the module's own names numbers in the order of their first use, each function's for itself, and drops
    docstrings. Parameters that some call names by keyword belong to the whole module."""

    def __init__(self, tree: ast.Module) -> None:
        keywords = {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg}
        self.by_keyword = keywords & {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
        self.imports = imported(tree)
        self.count = 0
        self.scopes: list[dict[str, str]] = [dict.fromkeys(bound(tree), "")]
        self.keywords: dict[str, str] = {}

    def name(self, name: str) -> str:
        for scope in reversed(self.scopes):
            if name in scope:
                if not scope[name]:
                    scope[name], self.count = f"v{self.count}", self.count + 1
                return scope[name]
        return f"import:{self.imports[name]}" if name in self.imports else name

    def keyword(self, name: str) -> str:
        return self.keywords.setdefault(name, f"k{len(self.keywords)}")

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(self.name(node.id), node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        self.generic_visit(node)
        return ast.arg(self.name(node.arg), node.annotation)

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        self.generic_visit(node)
        return ast.keyword(self.keyword(node.arg) if node.arg in self.by_keyword else node.arg, node.value)

    def visit_Global(self, node: ast.Global) -> ast.AST:
        return ast.Global([self.name(n) for n in node.names])

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.AST:
        return ast.Nonlocal([self.name(n) for n in node.names])

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        node.name = self.name(node.name) if node.name else None
        self.generic_visit(node)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self.name(node.name)
        node.decorator_list = [self.visit(part) for part in node.decorator_list]
        parameters = [part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)]
        shared = {name: self.keyword(name) for name in parameters if name in self.by_keyword}
        self.scopes.append({**dict.fromkeys(bound(node), ""), **shared})
        decorators, node.decorator_list = node.decorator_list, []
        made = self.body(node)
        node.decorator_list = decorators
        self.scopes.pop()
        return made

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = self.name(node.name)
        return self.body(node)

    def visit_Module(self, node: ast.Module) -> ast.AST:
        """Imports go: what of them is used stands at its use."""
        node.body = [part for part in node.body if not isinstance(part, ast.Import | ast.ImportFrom)]
        return self.body(node)

    def body(self, node: ast.FunctionDef | ast.ClassDef | ast.Module) -> ast.AST:
        rest = [part for part in node.body if not is_bare_constant(part) and not isinstance(part, ast.Pass)]
        node.body = rest or [ast.Pass()]
        self.generic_visit(node)
        return node


def is_bare_constant(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def bound(scope: ast.Module | ast.FunctionDef) -> set[str]:
    """Names that a scope binds itself: parameters, assignments, functions, classes. ``run`` stays what it is."""
    found: set[str] = set()
    outside: set[str] = set()
    if isinstance(scope, ast.FunctionDef):
        found |= {node.arg for node in ast.walk(scope.args) if isinstance(node, ast.arg)}
    waiting: list[ast.AST] = list(scope.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
            continue
        if isinstance(node, ast.Global | ast.Nonlocal):
            outside.update(node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            found.add(node.id)
        elif isinstance(node, ast.Lambda):
            found |= {inner.arg for inner in ast.walk(node.args) if isinstance(inner, ast.arg)}
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
        waiting.extend(ast.iter_child_nodes(node))
    return found - outside - {"run"}


def imported(tree: ast.Module) -> dict[str, str]:
    """Name → what it is, for the imports at the top of the module."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                found[name] = alias.name if alias.asname else name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                found[alias.asname or alias.name] = f"{'.' * node.level}{node.module or ''}.{alias.name}"
    return found


def canonical_cpp(text: str) -> str:
    """Tokens, with names that the file declares numbered in the order of their declarations, each scope's for itself,
    and numbers in one spelling."""
    found = list(lines_of_preprocessor(text))
    places = declarations(found)
    scopes: list[dict[str, str]] = [{}]
    spelled: list[str] = []
    count = 0
    for place, token in enumerate(found):
        if token.text == "{":
            scopes.append({})
        elif token.text == "}" and len(scopes) > 1:
            scopes.pop()
        if place in places:
            scopes[-1][token.text], count = f"v{count}", count + 1
        after = found[place - 1].text if place else ""
        known = token.kind == "name" and after not in (".", "->", "::")
        named = next((scope[token.text] for scope in reversed(scopes) if token.text in scope), "") if known else ""
        spelled.append(named or (number(token.text) if token.kind == "number" else token.text))
    return " ".join(spelled)


def lines_of_preprocessor(text: str) -> list[Token]:
    """All tokens; the end of a preprocessor line is one of them, since it ends what it says."""
    found: list[Token] = []
    directive = 0
    for token in tokens(text):
        if directive and token.line != directive:
            found.append(Token("op", "\\n", directive))
            directive = 0
        if token.text == "#" and (not found or found[-1].line != token.line):
            directive = token.line
        found.append(token)
    return found


def declarations(found: list[Token]) -> set[int]:
    """Places where a declaration names something: after a type, and before what follows a name.

    Told by shape alone; in doubt a name is not one of ours, and two sources count as different then. Names that are
    also used as a member somewhere, and those of macros, stay as they are.
    """
    places: set[int] = set()
    kept = {"run", "main"} | TYPES | NOT_TYPES
    depth, open_at = 0, -1
    for place, token in enumerate(found):
        before = found[place - 1] if place else Token("op", "", 0)
        after = found[place + 1].text if place + 1 < len(found) else ";"
        depth += (token.text in "([{") - (token.text in ")]}")
        if token.text == ";" or depth < open_at:
            open_at = -1
        if token.kind != "name":
            continue
        if before.text in (".", "->", "::", "define", "#"):
            kept.add(token.text)
        elif after in AFTER_A_NAME and (is_type(before) or is_after_type(found, place - 1)):
            places.add(place)
            open_at = depth
        elif depth == open_at and before.text == "," and after in ("=", ";", ",", "[", "{"):
            places.add(place)  # int a = 0, b = 1;
    return {place for place in places if found[place].text not in kept}


def is_type(token: Token) -> bool:
    if token.kind != "name":
        return False
    return token.text in TYPES or bool(re.fullmatch(r"\w+_t|__restrict__|__restrict|const|constexpr", token.text))


def is_after_type(found: list[Token], place: int) -> bool:
    """``float* x``, ``float *const p``, ``std::vector<float> v``; not ``a * b`` and not ``a > b``."""
    while place > 0 and found[place].text in ("*", "&", "&&"):
        place -= 1
        if is_type(found[place]):
            return True
    if found[place].text != ">":
        return False
    inside = place - 1
    while inside > 0 and (found[inside].kind in ("name", "number") or found[inside].text in ("::", ",", "*")):
        inside -= 1
    return inside > 1 and found[inside].text == "<" and found[inside - 2].text == "::"


def number(text: str) -> str:
    """A whole number in decimals, one with a point by its value, the suffix kept in small letters."""
    match = re.fullmatch(r"(0[xX][0-9a-fA-F']+|0[bB][01']+|[\d'.]+(?:[eE][-+]?\d+)?)([uUlLfFzZ]*)", text)
    if not match:
        return text
    digits, suffix = match[1].replace("'", ""), match[2].lower()
    if match[1][:2].lower() == "0x" and suffix.startswith("f"):
        return text
    try:
        if digits[:2].lower() in ("0x", "0b"):
            return f"{int(digits, 0)}{suffix}"
        if digits.isdigit():
            octal = len(digits) > 1 and digits[0] == "0" and "f" not in suffix
            return f"{int(digits, 8) if octal else int(digits)}{suffix}"
        return f"{float(digits)!r}{suffix}"
    except ValueError:
        return text
