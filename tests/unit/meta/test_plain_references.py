"""No file refers to a rule by a code, or to a document that is not in this repository.

`F5` and its like are keys and stay allowed, but not `(F5)` or `promise F5`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]
TEXTS: Final = frozenset(
    ["", ".cfg", ".js", ".json", ".md", ".py", ".sh", ".toml", ".ts", ".txt", ".yaml", ".yml"]
)
PARTS: Final = ("dap_mux", "docs", "examples", "tests", "tools", "vscode-extension", ".ci")
GENERATED: Final = frozenset({"node_modules", "dist", "out", "__pycache__", ".vscode-test"})
CODE: Final = re.compile(
    r"""
    \bFACTS\b | \bDESIGN\.md\b | \bHOUSE\.md\b
    | \b[KSR](?:[1-9]|1[01])\b
    | \(F[1-9]\b | \bF[1-9]\ to\ F[1-9]\b | \b[Pp]romises?\ [A-Z]\d
    | \bdef\ test_(?:[ksr]\d{1,2}|f[1-9](?!_without_launch_json))_
    """,
    re.VERBOSE,
)


def files() -> Iterator[Path]:
    """Every text of this repository."""
    yield from (path for path in ROOT.iterdir() if path.is_file() and path.suffix in TEXTS)
    for part in PARTS:
        for path in (ROOT / part).rglob("*"):
            inside = path.relative_to(ROOT).parts
            if path.suffix in TEXTS and path.is_file() and not GENERATED & set(inside):
                yield path


def test_no_code_stands_for_a_rule() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {hit[0]}"
        for path in files()
        if path != Path(__file__)
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1)
        for hit in CODE.finditer(line)
    ]
    assert not found, "\n".join(found)
