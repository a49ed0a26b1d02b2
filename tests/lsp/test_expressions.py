"""What stands under the cursor, and in which function."""

from __future__ import annotations

import ast

import pytest

from dap_mux.frontends.lsp.file_versions import expression_at, function_at, parsed

PROGRAM = """\
import os

top = {"a": [1]}


def outer(first: int, *, key=None):
    batch = first
    print(batch.unit[key + 1], os.environ["x y"], f(first)[0], -top["a"][0])

    def inner():
        return first

    return [each for each in top]


class Model:
    rate = 1

    async def step(self):
        self.rate.value = 2
"""


TREE = ast.parse(PROGRAM)


@pytest.mark.parametrize(
    ("word", "offset", "text"),
    [
        ("top = ", 1, "top"),
        ("first: int", 2, "first"),
        ("first: int", 8, "int"),
        ("batch = ", 0, "batch"),
        ("batch.unit[", 2, "batch"),
        ("batch.unit[", 7, "batch.unit"),
        ("batch.unit[", 10, "batch.unit"),
        ("key + 1", 5, "batch.unit[key + 1]"),
        ("key + 1", 1, "key"),
        ('environ["x y"]', 10, "os.environ['x y']"),
        ("f(first)[0]", 9, None),
        ("f(first)[0]", 3, "first"),
        ("print(", 2, None),
        ("self.rate.value", 7, "self.rate"),
        ("return first", 2, None),
        ("def inner", 6, None),
        ("import os", 8, None),
    ],
)
def test_what_stands_there(word: str, offset: int, text: str | None) -> None:
    before = PROGRAM[: PROGRAM.index(word) + offset]
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1)
    found = expression_at(TREE, line, column)
    assert (found.text if found else None) == text


def test_where_it_stands_in_bytes() -> None:
    found = expression_at(ast.parse("é = ü.ö\n"), 1, 8)
    assert found is not None
    assert (found.text, found.column, found.end_column) == ("ü.ö", 5, 10)


def test_functions() -> None:
    names = {line: getattr(function_at(TREE, line), "name", None) for line in range(1, 21)}
    assert [names[line] for line in (1, 3, 6, 8, 11, 13, 17, 20)] == [
        None, None, "outer", "outer", "inner", "outer", None, "step",
    ]  # fmt: skip
    assert function_at(TREE, 6) is function_at(TREE, 13)
    assert function_at(TREE, 8) is not function_at(TREE, 11)


@pytest.mark.parametrize("text", ["def f(", "x = '", "\0", "(" * 500])
def test_what_is_no_program(text: str) -> None:
    assert parsed(text) is None
