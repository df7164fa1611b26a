"""The house rules that no linter knows: a pure core, small parts, one door for all that deletes."""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "lifecycle"

FUNCTION_LINES_MAX = 60
MODULE_LINES_MAX = 400
CORE_CODE_LINES_MAX = 3000  # why not the 1,500 it began with: docs/adr/0008

# The core, what reckons with it and the layouts see values only: no clock, no I/O, no environment.
PURE = ("core", "layouts", "review", "sizing")
IMPURE_MODULES = {
    "io", "os", "pathlib", "random", "secrets", "shutil", "socket", "subprocess", "sys", "tempfile",
    "threading", "time",
}  # fmt: skip
IMPURE_CALLS = re.compile(
    r"(datetime\.)?(datetime|date)\.(now|utcnow|today)|time\.(time|time_ns|monotonic)|open|input|print|eval|exec|__import__"
)

# Calls that make something unreachable, whatever object they are called on, and where only the module tells.
DESTRUCTIVE = re.compile(
    r"(os|shutil)\.(remove|replace|truncate|move)"
    r"|(.*\.)?(unlink|rmdir|removedirs|rename|renames|rmtree|delete_objects?|delete_bucket)"
)
DESTRUCTIVE_ALLOWED = ("stores/",)

# The destructive methods of the store port: planned, warranted and journalled, or not called at all.
PORT_DESTRUCTIVE = re.compile(r".*\.(retire|purge|restore)")
PORT_ALLOWED = ("flows/handlers.py", "stores/")

EXCEPTION = re.compile(r"#\s*(type:\s*ignore|noqa|pragma:\s*no\s*(cover|branch))(?P<rest>.*)", re.IGNORECASE)
CODES = re.compile(r"^(\[[\w\-, ]*\]|:\s*[A-Z]+\d+(\s*,\s*[A-Z]+\d+)*)")


def modules(*under: str) -> list[Path]:
    """The package's modules, all or those of the named floors; each floor is a package or a single file."""
    found = sorted(PACKAGE.rglob("*.py"))
    return [path for path in found if not under or name(path).split("/")[0].removesuffix(".py") in under]


def name(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes(), str(path))


def imports(parsed: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(parsed):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module


def aliases(parsed: ast.AST) -> dict[str, str]:
    """Local name -> what was imported, so that `from os import unlink as u` hides nothing."""
    names: dict[str, str] = {}
    for node in ast.walk(parsed):
        if isinstance(node, ast.Import):
            names |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return names


def dotted(node: ast.expr, names: dict[str, str]) -> str:
    """`os.unlink` for that attribute; what is not a plain name becomes `?`, as in `?.unlink`."""
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value, names)}.{node.attr}"
    return "?"


def uses(parsed: ast.AST, pattern: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Where a matching function is called, or passed on to be called: `to_thread(os.unlink)`."""
    names = aliases(parsed)
    for node in ast.walk(parsed):
        if isinstance(node, ast.Call):
            for part in (node.func, *node.args, *(keyword.value for keyword in node.keywords)):
                local = isinstance(part, ast.Name) and part.id not in names  # an argument called `input`
                if part is not node.func and local:
                    continue
                if pattern.fullmatch(text := dotted(part, names)):
                    yield part.lineno, text


def breaches(paths: list[Path], rule: Callable[[ast.Module], Iterator[tuple[int, str]]]) -> list[str]:
    return [f"{name(path)}:{line}: {text}" for path in paths for line, text in rule(tree(path))]


def outside(allowed: tuple[str, ...]) -> list[Path]:
    return [path for path in modules() if not name(path).startswith(allowed)]


def code_lines(path: Path) -> int:
    """Lines that hold code: not blank, not only a comment, not a docstring."""
    idle = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENCODING,
    }
    idle.add(tokenize.ENDMARKER)
    lines: set[int] = set()
    for token in tokenize.tokenize(io.BytesIO(path.read_bytes()).readline):
        if token.type not in idle:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def impure_imports(parsed: ast.AST) -> Iterator[tuple[int, str]]:
    for line, module in imports(parsed):
        top = module.split(".")[0]
        foreign = top != "lifecycle" and top not in sys.stdlib_module_names
        if foreign or top in IMPURE_MODULES or module == "importlib.resources":
            yield line, f"imports {module}"


def long_functions(parsed: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(parsed):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES_MAX:
                yield node.lineno, f"{node.name} has {length} lines"


def unreasoned(source: str) -> Iterator[tuple[int, str]]:
    """Exceptions to a gate with no reason on their line, nor in a comment on the line above."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or not (match := EXCEPTION.search(token.string)):
            continue
        before, rest = token.string[: match.start()], match["rest"]
        while again := EXCEPTION.search(rest):  # two exceptions on one line share a reason
            before, rest = before + CODES.sub("", rest[: again.start()].strip()), again["rest"]
        reason = before + CODES.sub("", rest.strip())
        above = lines[token.start[0] - 2].strip() if token.start[0] > 1 else ""
        explained = above.startswith("#") and not EXCEPTION.search(above)
        if len(re.findall(r"[A-Za-z]{2,}", reason)) < 2 and not explained:
            yield token.start[0], token.string


def test_pure_floors_import_only_pure_modules():
    assert breaches(modules(*PURE), impure_imports) == []


def test_pure_floors_read_no_clock_and_open_nothing():
    assert breaches(modules(*PURE), lambda parsed: uses(parsed, IMPURE_CALLS)) == []


def test_functions_are_short():
    assert breaches(modules(), long_functions) == []


def test_modules_are_short():
    lengths = {name(path): len(path.read_bytes().splitlines()) for path in modules()}
    assert {path: length for path, length in lengths.items() if length > MODULE_LINES_MAX} == {}


def test_the_core_is_small():
    assert sum(map(code_lines, modules("core"))) <= CORE_CODE_LINES_MAX


def test_only_stores_destroy():
    found = breaches(outside(DESTRUCTIVE_ALLOWED), lambda parsed: uses(parsed, DESTRUCTIVE))
    assert found == []


def test_only_handlers_tell_a_store_to_destroy():
    found = breaches(outside(PORT_ALLOWED), lambda parsed: uses(parsed, PORT_DESTRUCTIVE))
    assert found == []


def test_every_exception_to_a_gate_carries_a_reason():
    found = [f"{name(path)}:{n}: {text}" for path in modules() for n, text in unreasoned(path.read_text())]
    assert found == []


# The rules themselves, tried on what they must catch and on what they must let pass.


@pytest.mark.parametrize(
    "source",
    [
        "import os\nos.unlink(p)",
        "import os as o\no.replace(a, b)",
        "from os import replace\nreplace(a, b)",
        "from shutil import rmtree as r\nr(p)",
        "import os, asyncio\nasyncio.to_thread(os.remove, p)",
        "from os import remove\nrun(remove, p)",
        "from pathlib import Path\nPath(p).unlink()",
        "client.delete_objects(Bucket=b)",
        "self.client.delete_object(Bucket=b)",
        "path.rename(other)",
    ],
)
def test_destruction_is_seen(source: str):
    assert list(uses(ast.parse(source), DESTRUCTIVE))


@pytest.mark.parametrize(
    "source",
    ["text.replace('a', 'b')", "from dataclasses import replace\nreplace(x, a=1)", "names.remove(x)"],
)
def test_harmless_names_pass(source: str):
    assert list(uses(ast.parse(source), DESTRUCTIVE)) == []


@pytest.mark.parametrize(
    "source",
    [
        "from datetime import datetime\ndatetime.now()",
        "import datetime\ndatetime.datetime.now(tz)",
        "import datetime as dt\ndt.datetime.utcnow()",
        "from datetime import date\ndate.today()",
        "open('x')",
        "from time import time\ntime()",
        "x = field(default_factory=datetime.now)",
    ],
)
def test_clocks_and_files_are_seen(source: str):
    assert list(uses(ast.parse(source), IMPURE_CALLS))


@pytest.mark.parametrize("source", ["import os.path", "from random import random", "import numpy", "import time"])
def test_impure_imports_are_seen(source: str):
    assert list(impure_imports(ast.parse(source)))


@pytest.mark.parametrize(
    ("source", "bare"),
    [
        ("x = 1  # noqa\n", True),
        ("x = 1  # noqa: E501\n", True),
        ("x = 1  # type: ignore[arg-type]\n", True),
        ("x = 1  # pragma: no cover\n", True),
        ("x = 1  # type: ignore[arg-type]  # noqa: E501\n", True),
        ("x = 1  # noqa: E501 - a golden line\n", False),
        ("x = 1  # type: ignore[arg-type]  # boto3 ships no type here\n", False),
        ("# the kernel never says so here\nx = 1  # pragma: no cover\n", False),
        ("x = '# noqa'\n", False),
    ],
)
def test_reasons_are_asked_for(source: str, bare: bool):
    assert bool(list(unreasoned(source))) is bare


def test_docstrings_and_comments_are_no_code(tmp_path: Path):
    path = tmp_path / "sample.py"
    path.write_text('"""One.\n\nTwo.\n"""\n\n# three\nx = (\n    1,\n)\n')
    assert code_lines(path) == 3
