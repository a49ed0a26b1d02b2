"""What a rank knows of a file: whether it has it, what is in it, and files of the same name.

Called while the rank runs, and before it is configured. Nothing in it raises.
"""

from __future__ import annotations

import hashlib
import json
import linecache
import os
import stat
import sys
import tokenize
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Callable

MAX_CANDIDATES = 8
"""So many files of the same name are listed."""
BACKSLASH = chr(92)  # written out, it would be escaped again and again on its way


def compare(path: str, wanted: str, largest: int) -> str:
    """Return JSON: the file's digest (`digest`), and where that is not `wanted`, files `near` it.

    `wanted`: a digest, "" for any. `largest`: of a file with more bytes only the size is compared.
    """
    found = digest(path, largest)
    same = found and wanted in ("", found)
    return json.dumps({"digest": found, "near": [] if same else near(path, largest)})


def read(path: str, largest: int) -> str:
    """Return JSON: the file's `text` as Python reads it, or the `problem`."""
    try:
        about = os.stat(path)  # noqa: PTH116  (ValueError, as below)
        if not stat.S_ISREG(about.st_mode):
            return json.dumps({"problem": "it is no regular file"})
        if about.st_size > largest:
            return json.dumps({"problem": f"it is larger than {largest} bytes"})
        return json.dumps({"text": _text(path)})
    except (OSError, ValueError) as error:
        lines = linecache.getlines(path)
        return json.dumps({"text": "".join(lines)} if lines else {"problem": str(error)})


def _text(path: str) -> str:
    try:
        with tokenize.open(path) as file:
            return file.read()
    except (SyntaxError, UnicodeDecodeError):
        with open(path, errors="replace") as file:  # noqa: PTH123
            return file.read()


def digest(path: str, largest: int) -> str:
    """Return the file's SHA-256, `size:N` for a large file, "" where there is no such file."""
    try:
        about = os.stat(path)  # noqa: PTH116
        if not stat.S_ISREG(about.st_mode):
            return ""
        if about.st_size > largest:
            return f"size:{about.st_size}"
        with open(path, "rb") as file:  # noqa: PTH123
            return hashlib.sha256(file.read()).hexdigest()
    except (OSError, ValueError):
        return ""


def near(path: str, largest: int) -> list[Any]:
    """Return [path, digest, whether the program was started with it] of files of that name.

    They are those of modules that are loaded; the longest common end of the path comes first.
    """
    name = _parts(path)[0]
    main = _file_of(sys.modules.get("__main__"))
    started = [file for file in (main, *sys.argv[:1]) if isinstance(file, str)]
    files = [*started, *map(_file_of, list(sys.modules.values()))]
    named = [file for file in files if isinstance(file, str) and os.path.basename(file) == name]  # noqa: PTH119
    others = {os.path.abspath(file) for file in named} - {path}  # noqa: PTH100
    first = {os.path.abspath(file) for file in started}  # noqa: PTH100
    nearest = sorted(others, key=_distance_from(path))[:MAX_CANDIDATES]
    return [[file, digest(file, largest), file in first] for file in nearest]


def _file_of(module: Any) -> Any:
    """By its namespace alone: a module may run code of its own when an attribute is missing."""
    return getattr(module, "__dict__", {}).get("__file__")


def _distance_from(path: str) -> Callable[[str], tuple[int, str]]:
    parts = _parts(path)

    def distance(other: str) -> tuple[int, str]:
        same = [mine == theirs for mine, theirs in zip(parts, _parts(other))]  # noqa: B905
        return -[*same, False].index(False), other

    return distance


def _parts(path: str) -> list[str]:
    """The names in a path, of Windows too, the last first."""
    return path.replace(BACKSLASH, "/").split("/")[::-1]
