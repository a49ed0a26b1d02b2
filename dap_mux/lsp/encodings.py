"""Files that are not encoded in UTF-8: VS Code reads some of them, we write into none."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dap_mux.user_files import open_regular

_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
_ADVICE: Final = "so dap-mux cannot add path mappings to it: save it as UTF-8"


@dataclass(frozen=True)
class EncodingProblem:
    """Why a file cannot be read; `line`, 0-based, is the first that is not UTF-8."""

    line: int
    message: str


def encoding_problem(path: str) -> EncodingProblem | None:
    """Return what is wrong with the encoding of a file; None for UTF-8, and without a file."""
    try:
        with open_regular(Path(path)) as file:
            raw = file.read()
    except (OSError, ValueError):
        return None
    name = Path(path).name
    if raw.startswith(_UTF_16) or b"\0" in raw:
        return EncodingProblem(0, f"{name} is encoded in UTF-16, {_ADVICE}")
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start)
        return EncodingProblem(line, f"{name} is not encoded in UTF-8 (line {line + 1}), {_ADVICE}")
    return None
