"""Digests of files of clients on this machine, computed in threads."""

from __future__ import annotations

import asyncio
import os
import stat
import time
import tokenize
from collections.abc import Callable, Coroutine, Iterable
from typing import Final, TypeAlias

from dap_mux.engine.remote.file_probe import MAX_COMPARED_BYTES

Stamp: TypeAlias = tuple[int, int, int]
MAX_TEXT_BYTES: Final = 1024 * 1024
MAX_REMEMBERED: Final = 4096  # files
# A file changed this recently may change again without its time showing it.
MTIME_GRANULARITY_S: Final = 2.0  # s


class LocalFiles:
    """Digests of files, cached for as long as a file is unchanged."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Stamp, str]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def digests(self, paths: Iterable[str], then: Callable[[dict[str, str]], None]) -> None:
        """Call `then` in the event loop with each path's digest, "" where there is no such file.

        A file is read in a thread: one on a network may take its time.
        """
        self._start(self._answer(list(paths), then))

    def text(self, path: str, then: Callable[[str], None]) -> None:
        """Call `then` in the event loop with the text of a file as Python reads it.

        "" where there is no such file, or where it is too large or no text.
        """
        self._start(self._answer_text(path, then))

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Cancel all pending work."""
        for task in list(self._tasks):
            task.cancel()

    async def _answer(self, paths: list[str], then: Callable[[dict[str, str]], None]) -> None:
        then(await asyncio.to_thread(self._all, paths) if paths else {})

    async def _answer_text(self, path: str, then: Callable[[str], None]) -> None:
        then(await asyncio.to_thread(_text_of, path))

    def _all(self, paths: list[str]) -> dict[str, str]:
        return {path: self._digest(path) for path in paths}

    def _digest(self, path: str) -> str:
        """As in ranks (`engine.source_files.probe`): for a large file only its size counts."""
        try:
            about = os.stat(path)  # noqa: PTH116
            if not stat.S_ISREG(about.st_mode) or not os.path.isabs(path):  # noqa: PTH117
                return ""
            if about.st_size > MAX_COMPARED_BYTES:
                return f"size:{about.st_size}"
            return self._hashed(path, (about.st_mtime_ns, about.st_size, about.st_ino))
        except (OSError, ValueError):
            return ""

    def _hashed(self, path: str, stamp: Stamp) -> str:
        known = self._known.get(path)
        if known is None or known[0] != stamp:
            from hashlib import sha256  # with OpenSSL, which a start does without

            settled = time.time() - stamp[0] / 1e9 > MTIME_GRANULARITY_S  # before it is read
            with open(path, "rb") as file:  # noqa: PTH123
                known = stamp, sha256(file.read()).hexdigest()
            if len(self._known) >= MAX_REMEMBERED:
                self._known.clear()
            if settled:
                self._known[path] = known
        return known[1]


def _text_of(path: str) -> str:
    try:
        about = os.stat(path)  # noqa: PTH116
        is_small = stat.S_ISREG(about.st_mode) and about.st_size <= MAX_TEXT_BYTES
        if not is_small or not os.path.isabs(path):  # noqa: PTH117
            return ""
        with tokenize.open(path) as file:
            return file.read()
    except (OSError, SyntaxError, ValueError):
        return ""
