"""The files that a taken rank has read: named where one is not there, or another, in a replay."""

from __future__ import annotations

import os
import sys
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dap_mux.rank.take.rank_file import digest_of

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Iterator

MAX_FILES, MAX_SAID = 1000, 3
PROGRAMS = (".py", ".pyc", ".so")
OTHERS = ("/proc/", "/sys/", "/dev/")
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
Json = dict[str, Any]


class DataFiles:
    """Hears which files are opened, by Python's own event; `digests`: each is read once more."""

    def __init__(self, *, digests: bool) -> None:
        self._digests = digests
        self._new: deque[str] = deque(maxlen=MAX_FILES)
        self._seen: set[Path] = set()
        ours = (sys.prefix, sys.base_prefix, Path(__file__).parents[2])
        self._left_out = (*OTHERS, *(f"{each}{os.sep}" for each in ours))
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and len(arguments) == len(("path", "mode", "flags")):
            path, mode, flags = arguments
            if isinstance(path, str) and _reads(mode, flags):
                self._new.append(path)

    def new(self) -> Iterator[Json]:
        """Yield what has been read since: `path`, from the rank's folder, `size` and `digest`."""
        while self._new:
            with suppress(OSError, ValueError):  # the file, or this folder, has gone meanwhile
                found = self._described(Path(self._new.popleft()).absolute())
                if found is not None:
                    yield found

    def _described(self, path: Path) -> Json | None:
        known = path in self._seen or len(self._seen) >= MAX_FILES
        if known or path.suffix in PROGRAMS or str(path).startswith(self._left_out):
            return None
        self._seen.add(path)
        if not path.is_file():
            return None
        here = Path.cwd()
        name = str(path.relative_to(here) if here in path.parents else path)
        digest = digest_of(name) if self._digests else ""
        return {"path": name, "size": path.stat().st_size, "digest": digest}


def _reads(mode: Any, flags: Any) -> bool:
    """Whether a file is opened to be read: by `open`, which has a mode, or by `os.open`."""
    if isinstance(mode, str):
        return mode.startswith("r") and "+" not in mode
    return isinstance(flags, int) and not flags & WRITES


def changes(files: list[Json]) -> list[str]:
    """Return which of these files are not what they were, as clauses."""
    said = []
    for each in files:
        path, digest = Path(each["path"]), each["digest"]
        if not path.is_file():
            said.append(f"{path}, which the rank has read, is not here")
        elif path.stat().st_size != each["size"] or (digest and digest_of(str(path)) != digest):
            said.append(f"{path} is not the file that the rank has read")
    return said[:MAX_SAID]
