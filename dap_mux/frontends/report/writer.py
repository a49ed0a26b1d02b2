"""Writes a report and its page: redacted, and bounded."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from dap_mux.frontends.report.page import page_of
from dap_mux.frontends.report.report_file import Contents, Report, Stop, packed
from dap_mux.pure.errors import UsageError
from dap_mux.rank.redaction import MAX_TEXT, map_texts, redacted
from dap_mux.system.user_files import write_whole

MAX_BYTES: Final = 5_000_000
MAX_VALUE: Final = 1000
"""Characters of a value."""


def destination(text: str) -> Path:
    """Return where the report goes. Raises UsageError where it cannot be written."""
    path = Path(text)
    if path.suffix == ".html":
        raise UsageError(f"{path}: the page gets that name; pass another, {path.stem}.dapmux")
    if not path.parent.is_dir() or path.is_dir():
        raise UsageError(f"{path}: {'a folder' if path.is_dir() else 'there is no such folder'}")
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f"{path}: its folder cannot be written to")
    return path


def write(path: Path, contents: Contents) -> Path:
    """Write both files, without secrets; return the page's path. Raises OSError."""
    contents = without_secrets(contents)
    while True:
        stops = contents.stops
        data = packed(contents.report, stops, contents.output, contents.texts)
        if len(data) <= MAX_BYTES or not stops:
            break
        gone = len(stops) - min(len(stops) - 1, len(stops) * MAX_BYTES // len(data))
        report = replace(contents.report, stops_before=contents.report.stops_before + gone)
        contents = Contents(report, stops[gone:], contents.output, contents.texts)
    page = path.with_suffix(".html")
    write_whole(path, data)  # nobody else may read it: it shows a program's data
    write_whole(page, page_of(contents).encode("utf-8", "replace"))
    return page


def without_secrets(contents: Contents) -> Contents:
    """Return the same with each text redacted."""
    once = cache(redacted)

    def change(text: str, name: str) -> str:
        return once(text, name)[:MAX_VALUE] if name else once(text, "")

    def clean(value: Any, kind: Any) -> Any:
        return msgspec.convert(map_texts(msgspec.to_builtins(value), change), kind)

    raw = contents.report
    command = _command(raw.command)
    block = raw.end_block.replace(shlex.join(raw.command), shlex.join(command))
    report = clean(replace(raw, command=(), end_block=block), Report)
    output = [replace(one, text=long_redacted(one.text)) for one in contents.output]
    texts = {path: long_redacted(text) for path, text in contents.texts.items()}
    stops = tuple(_stop(clean(stop, Stop)) for stop in contents.stops)
    return Contents(replace(report, command=command), stops, tuple(output), texts)


def _stop(stop: Stop) -> Stop:
    """Redact the values of expressions, whose names are keys."""
    at = (
        replace(one, values={name: redacted(text, name) for name, text in one.values.items()})
        for one in stop.at
    )
    return replace(stop, at=tuple(at))


def _command(words: Sequence[str]) -> tuple[str, ...]:
    """Return a command without its secrets: the word behind `--api-key` is one."""
    names = ("", *words)
    return tuple(
        redacted(word, before.lstrip("-") if before.startswith("-") else "")
        for before, word in zip(names, words, strict=False)
    )


def long_redacted(text: str) -> str:
    """Return the whole of a text without its secrets, line by line where it is long."""
    pieces: list[str] = [""]
    for line in text.splitlines(keepends=True):
        if len(pieces[-1]) + len(line) > MAX_TEXT:
            pieces.append("")
        pieces[-1] += line
    return "".join(map(redacted, pieces))
