"""What is evaluated in a rank to learn about its files, and how its answers are read.

Each is one expression for a frameless evaluate, which works while the rank runs and before it is
configured: functions of `injected.file_probe`, whose source is `source`.
"""

from __future__ import annotations

from typing import Final

import msgspec

from dap_mux.engine.injected_sources import call
from dap_mux.protocol.rank_messages import read_text

LARGEST: Final = 4 * 1024 * 1024  # bytes; of a larger file only the size is compared
WHERE: Final = "__import__('os').getcwd()"


class Found(msgspec.Struct, frozen=True):
    """What a rank has at a path: a digest, "" for no such file.

    `near`: files of that name which it has loaded, with their digests, and whether it was
    started with them; only where the file is missing or not the one that was wanted.
    """

    digest: str = ""
    near: list[tuple[str, str, bool]] = []


class Content(msgspec.Struct, frozen=True):
    """A file's text, or why there is none."""

    text: str | None = None
    problem: str = "it could not be read"


def look_at(source: str, path: str, wanted: str) -> str:
    """Return the expression whose value `found` reads; `wanted` is a digest, "" for any."""
    return call(source, "compare", repr(path), repr(wanted), str(LARGEST))


def read(source: str, path: str) -> str:
    """Return the expression whose value `content` reads."""
    return call(source, "read", repr(path), str(LARGEST))


def found(result: str) -> Found:
    """Read an answer. Raises `PeerFault`."""
    return read_text(result, Found)


def content(result: str) -> Content:
    """Read an answer. Raises `PeerFault`."""
    return read_text(result, Content)
