"""Diagnostics and completions for the rank sets and hosts in launch.json.

All that reads a launch.json runs in a worker thread: one may have megabytes, and other requests are
answered meanwhile.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from lsprotocol import types
from pygls.uris import to_fs_path

from dap_mux.lsp.launch_json import RankSetProblem, completions, is_launch, rank_set_problems
from dap_mux.lsp.positions import Positions
from dap_mux.lsp.server import Server, diagnostic
from dap_mux.user_files import open_regular

# Files that are not encoded in UTF-8: VS Code reads some of them, we write into none.

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


TRIGGERS: Final = ['"', "(", "=", ",", "@", ":", "|", "&", "~"]
GROUPS_TIMEOUT_S: Final = 0.5
MAX_PROBLEMS: Final = 100  # that are published of one file


def check(ls: Server, uri: str) -> None:
    """Publish the diagnostics of a launch.json, soon; ignore other files."""
    if is_launch(to_fs_path(uri) or ""):
        ls.coalescer.run(uri, partial(_check, ls, uri))


async def _check(ls: Server, uri: str) -> None:
    opened = ls.open_document(uri)
    text, version = (opened.source, opened.version) if opened else ("", None)
    problems, encoding = await asyncio.to_thread(_problems, to_fs_path(uri) or "", text)
    now = ls.open_document(uri)
    if (now.source if now else "") != text:
        return  # it has changed since, and is checked again
    found: list[types.Diagnostic] = []
    if now:
        positions, error = Positions(ls, now), types.DiagnosticSeverity.Error
        found += [
            diagnostic(positions.between(one.start, one.end), one.message, error)
            for one in problems
        ]
    if encoding and (now or uri in ls.launch_files_to_mend):
        # The line: its columns depend on how the editor has decoded it.
        start, behind = types.Position(encoding.line, 0), types.Position(encoding.line + 1, 0)
        found.append(diagnostic(types.Range(start, behind), encoding.message))
    ls.publish(uri, found, version)


def _problems(path: str, text: str) -> tuple[list[RankSetProblem], EncodingProblem | None]:
    return list(islice(rank_set_problems(text), MAX_PROBLEMS)), encoding_problem(path)


async def complete(ls: Server, asked: types.CompletionParams) -> types.CompletionList | None:
    """Complete rank sets and hosts."""
    uri = asked.text_document.uri
    if not is_launch(to_fs_path(uri) or ""):
        return None
    document = ls.document(uri)
    if document is None:
        return None
    positions = Positions(ls, document)
    line, column = positions.to_ast(asked.position)
    at, source = (line - 1, column), document.source  # the user may go on typing during the request
    body = await ls.follower.request("groups", {}, GROUPS_TIMEOUT_S) or {"groups": []}
    names = {one["name"]: one["definition"] for one in body["groups"]}
    found = await asyncio.to_thread(completions, source, at, ls.follower.ranks, names)
    items = [
        types.CompletionItem(
            one.text,
            kind=types.CompletionItemKind.Value,
            detail=one.detail,
            filter_text=one.text,
            sort_text=f"{number:03}",
            text_edit=types.TextEdit(positions.between(one.start, at), one.text),
        )
        for number, one in enumerate(found)
    ]
    return types.CompletionList(is_incomplete=True, items=items)
