"""What is sent to ranks is Python that they can run, and stands in modules."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dap_mux
from dap_mux.pure.remote import call
from dap_mux.rank.injected import folders
from dap_mux.session.session import injected_sources

ROOT = Path(dap_mux.__file__).parent
SOURCES = injected_sources().all
OLDEST_PYTHON = (3, 8)
"""The oldest that the oldest release of debugpy knows with which ranks are accepted."""
MAX_LINES = 3
DEBUGPYS = {"debugpy", "pydevd", "_pydev_bundle", "_pydevd_bundle", "_pydevd_frame_eval"}


@pytest.mark.parametrize("module", SOURCES)
def test_the_oldest_python_can_run_it(module: str) -> None:
    tree = ast.parse(SOURCES[module], feature_version=OLDEST_PYTHON)
    annotated = "from __future__ import annotations"  # else newer types are evaluated
    assert annotated in ast.unparse(tree)


@pytest.mark.parametrize("module", SOURCES)
def test_it_needs_the_standard_library_alone(module: str) -> None:
    for node in ast.walk(ast.parse(SOURCES[module])):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            names = [node.module or "."] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            assert name.split(".")[0] in sys.stdlib_module_names, name


def test_no_two_modules_have_one_name() -> None:
    """The engine calls them by name, whichever folder they are in."""
    assert sum(map(len, folders().values())) == len(SOURCES)


@pytest.mark.parametrize("arguments", [(), ("1",), ("given", "[2, given]")])
def test_a_call_in_a_frame_that_has_other_builtins(arguments: tuple[str, ...]) -> None:
    """It leaves no name behind, and its frames are debugpy's own."""
    source = "import sys\ndef f(*given):\n    return [*given, sys._getframe().f_code.co_filename]\n"
    names = {"compile": True, "exec": None, "given": 7}
    value = eval(call(source, "f", *arguments), dict(names), frame := dict(names))
    assert value == [*(eval(text, {"given": 7}) for text in arguments), "<builtin dap_mux>"]
    assert frame == names


def literals(tree: ast.Module) -> Iterator[tuple[int, str, int]]:
    """Every string that is no docstring: its line, its text, and how many lines it stands on."""
    parts: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):  # a docstring, or a string behind an attribute
            parts.add(node.value)
        if node in parts:
            continue
        if isinstance(node, ast.JoinedStr):
            parts.update(ast.walk(node))
            texts = [one.value if isinstance(one, ast.Constant) else "x" for one in node.values]
            text = "".join(map(str, texts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        yield node.lineno, text, max(lines, text.count("\n"))


def is_program(text: str) -> bool:
    """Whether this is Python with a statement, not just an expression."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return any(not isinstance(node, ast.Expr) for node in tree.body)


def programs(source: str) -> list[int]:
    """The lines with Python in a string of more than three lines."""
    found = literals(ast.parse(source))
    return [line for line, text, lines in found if lines > MAX_LINES and is_program(text)]


def test_programs_in_strings_are_found() -> None:
    body = "import os\ndef f():\n    return 1\nf()\n"
    assert programs(f'X = """{body}"""') == [1]
    assert programs(f'X = f"""{{y}} = 3\n{body}"""') == [1]
    assert programs(f"X = {body!r}") == [1]
    assert programs('X = (\n"for x in y:"\n" x"\n"."\n"z")') == [2]
    assert programs(f'"""{body}"""') == []
    assert programs('X = """a long\ntext of\nseveral\nlines"""') == []
    assert programs('X = "import os; os.getcwd()"') == []
    assert programs('X = (\n"[x"\n" for x"\n" in"\n" y]")') == []


def test_no_program_stands_in_a_string() -> None:
    """ruff, mypy and tests see none of it there: it belongs in a module of `rank.injected`."""
    found = {
        f"{path.relative_to(ROOT.parent)}:{line}"
        for path in ROOT.rglob("*.py")
        for line in programs(path.read_text("utf-8"))
    }
    assert found == set()
