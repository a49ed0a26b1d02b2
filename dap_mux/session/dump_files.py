"""Finds what a job has left in a folder: flight-recorder dumps, error.json files and logs."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dap_mux.pure.errors import DapMuxError, NothingToConnect, UsageError
from dap_mux.pure.insight.why.after_death import Remains, merged, read_failure
from dap_mux.pure.insight.why.recorder_dump import Dump, NotADump, collectives_in, read_dump
from dap_mux.pure.printable import one_line

MAX_FILES: Final = 20_000
MAX_BYTES: Final = 32 << 20
MAX_LOG_BYTES: Final = 16 << 20
"""Of a log its end is read."""
MAX_RANK: Final = 1 << 20
ERROR: Final = "error.json"
LOGS: Final = frozenset({".err", ".log", ".out", ".txt"})
_RANK: Final = re.compile(r"(\d{1,7})(?:\.(?:json|pickle|pkl))?$", re.ASCII)


_Dumps = dict[int, list[tuple[Path, Dump]]]


@dataclass
class Found:
    """`remains`, and files that look like dumps and are none, each with the reason."""

    remains: Remains = field(default_factory=Remains)
    skipped: list[str] = field(default_factory=list)


def find_remains(folder: Path) -> Found:
    """Look through a folder. Raises `DapMuxError` where nothing is found, or too much."""
    if not folder.is_dir():
        raise UsageError(f"--from {folder}: not a folder")
    found = Found()
    dumps: _Dumps = {}
    for path in _files(folder):
        problem = _problem(path, found.remains, dumps)
        if problem:
            found.skipped.append(one_line(f"{path.relative_to(folder)}: {problem}"))
    for rank, of_rank in dumps.items():
        if len({path.parent for path, _ in of_rank}) > 1:
            first, second = (str(path.relative_to(folder)) for path, _ in of_rank[:2])
            raise UsageError(f"two dumps of rank {rank}: {first} and {second}; name one's folder")
        found.remains.dumps[rank] = merged(dump for _, dump in of_rank)
    if not found.remains:
        why = f" ({'; '.join(found.skipped[:3])})" if found.skipped else ""
        raise NothingToConnect(
            f"{folder}: no flight-recorder dump, such as nccl_trace_rank_0 or rank_0.json{why}"
        )
    return found


def _files(folder: Path) -> Iterator[Path]:
    """Yield the regular files, in order. Raises `DapMuxError` for too many."""
    count = 0
    for root, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(root, name)
            if not path.is_file():  # a pipe would keep us waiting
                continue
            count += 1
            if count > MAX_FILES:
                raise DapMuxError(f"{folder}: more than {MAX_FILES} files; name the dumps' folder")
            yield path


def _problem(path: Path, remains: Remains, dumps: _Dumps) -> str:
    """Take what a file has; return why it cannot be read, "" where it can."""
    try:
        _look(path, remains, dumps)
    except NotADump as error:
        return str(error)
    except OSError as error:
        return error.strerror or "it cannot be read"
    return ""


def _look(path: Path, remains: Remains, dumps: _Dumps) -> None:
    """Take what a file has. Raises NotADump or OSError."""
    if path.name == ERROR:
        if (rank := _rank_of_folder(path)) is not None:
            content = _content(path)
            remains.failures[rank] = read_failure(content)
            _named(content.decode("utf-8", "replace"), remains)
    elif path.suffix in LOGS:
        _named(_end(path), remains)
    elif (match := _RANK.search(path.name)) and int(match[1]) < MAX_RANK:
        dump = read_dump(_content(path))
        dumps.setdefault(int(match[1]), []).append((path, dump))


def _named(text: str, remains: Remains) -> None:
    remains.running.add(collectives_in(text))


def _rank_of_folder(path: Path) -> int | None:
    """Return a rank by its folder, as torchelastic names those."""
    name = path.parent.name
    return int(name) if name.isdecimal() and name.isascii() and int(name) < MAX_RANK else None


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        size = os.fstat(file.fileno())
        if not stat.S_ISREG(size.st_mode):
            raise NotADump("not a regular file")
        if size.st_size > MAX_BYTES:
            raise NotADump(f"larger than {MAX_BYTES >> 20} MB")
        return file.read(MAX_BYTES + 1)


def _end(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - MAX_LOG_BYTES))
        return file.read(MAX_LOG_BYTES).decode("utf-8", "replace")
