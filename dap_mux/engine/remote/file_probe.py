"""Expressions that examine files in a rank, and how their results are read.

They call functions of `injected.file_probe`, whose source is `source`, and are evaluated without a
frame, which works while the rank runs and before it is configured.
"""

from __future__ import annotations

from typing import Final

import msgspec

from dap_mux.engine.remote.injected_sources import call
from dap_mux.protocol.rank_messages import read_text

MAX_COMPARED_BYTES: Final = 4 * 1024 * 1024  # of a larger file only the size is compared
WORKING_FOLDER: Final = "__import__('os').getcwd()"


class Found(msgspec.Struct, frozen=True):
    """The digest of a rank's file at a path, "" if there is none.

    `near`: loaded files of that name, with their digests, and whether the rank was started with
    them; given only if the file is missing or does not have the expected digest.
    """

    digest: str = ""
    near: list[tuple[str, str, bool]] = []


class Content(msgspec.Struct, frozen=True):
    """A file's text, or why it cannot be had."""

    text: str | None = None
    problem: str = "it could not be read"


def look_at(source: str, path: str, digest: str) -> str:
    """Return the expression whose value `found` reads; `digest` is the expected one, "" for any."""
    return call(source, "compare", repr(path), repr(digest), str(MAX_COMPARED_BYTES))


def read(source: str, path: str) -> str:
    """Return the expression whose value `content` reads."""
    return call(source, "read", repr(path), str(MAX_COMPARED_BYTES))


def found(result: str) -> Found:
    """Read an answer. Raises `PeerFault`."""
    return read_text(result, Found)


def content(result: str) -> Content:
    """Read an answer. Raises `PeerFault`."""
    return read_text(result, Content)
