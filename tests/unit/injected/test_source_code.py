"""The syntax around a line, found from a code object alone."""

from __future__ import annotations

import ast
import linecache
from types import CodeType

import pytest

from dap_mux.rank.injected.evidence.source_code import Trees, expression, tree

SOURCE = '''\
import contextlib

class Job:
    @contextlib.contextmanager
    def first(
        self,
    ):
        text = """
left
"""
        with self:
            yield text

    def second(self): return 3
for number in range(3):
    print(number)
'''


@pytest.fixture
def codes(monkeypatch: pytest.MonkeyPatch) -> dict[str, CodeType]:
    """Each code object of SOURCE by its name, with the source that linecache knows."""
    monkeypatch.setitem(
        linecache.cache, "job.py", (len(SOURCE), None, SOURCE.splitlines(keepends=True), "job.py")
    )
    found: dict[str, CodeType] = {}
    codes = [compile(SOURCE, "job.py", "exec")]
    for code in codes:
        found[code.co_name] = code
        codes += [each for each in code.co_consts if isinstance(each, CodeType)]
    return found


@pytest.mark.parametrize(
    ("function", "line", "innermost"),
    [("first", 12, ast.With), ("second", 14, ast.Return), ("<module>", 16, ast.For)],
)
def test_statements_keep_their_lines(
    codes: dict[str, CodeType], function: str, line: int, innermost: type[ast.stmt]
) -> None:
    found = [node for node in Trees().around(codes[function], line) if isinstance(node, innermost)]
    assert len(found) == 1
    assert found[0].lineno <= line <= (found[0].end_lineno or 0)


def test_without_a_source_there_is_none() -> None:
    code = compile("def f(): pass", "no such file", "exec")
    assert tree(code) is None
    assert Trees().around(code, 1) == []


def test_an_expression_of_several_lines() -> None:
    assert isinstance(expression("comm.recv(\n  source=1,\n)"), ast.Call)
    assert expression("with lock: pass") is None
