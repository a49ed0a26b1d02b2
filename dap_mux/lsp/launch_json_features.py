"""Diagnostics and completions for the rank sets and hosts in launch.json."""

from __future__ import annotations

from typing import Final

from lsprotocol import types
from pygls.uris import to_fs_path

from dap_mux.lsp.launch_json import completions, is_launch, rank_set_problems
from dap_mux.lsp.positions import Positions
from dap_mux.lsp.problems import SOURCE
from dap_mux.lsp.server import Server

TRIGGERS: Final = ['"', "(", "=", ",", "@", ":", "|", "&", "~"]
GROUPS_TIMEOUT_S: Final = 0.5


def opened(ls: Server, params: types.DidOpenTextDocumentParams) -> None:
    """Check a document that was opened."""
    check(ls, params.text_document.uri)


def changed(ls: Server, params: types.DidChangeTextDocumentParams) -> None:
    """Check a document that was changed."""
    check(ls, params.text_document.uri)


def closed(ls: Server, params: types.DidCloseTextDocumentParams) -> None:
    """Clear the diagnostics of a closed document; they return when it is opened again."""
    if is_launch(to_fs_path(params.text_document.uri) or ""):
        ls.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(params.text_document.uri, [])
        )


def check(ls: Server, uri: str) -> None:
    """Publish the diagnostics of a launch.json; ignore other files."""
    if not is_launch(to_fs_path(uri) or ""):
        return
    document = ls.workspace.get_text_document(uri)
    positions = Positions(ls, document)
    found = [
        types.Diagnostic(
            range=positions.between(one.start, one.end),
            severity=types.DiagnosticSeverity.Error,
            source=SOURCE,
            message=one.message,
        )
        for one in rank_set_problems(document.source)
    ]
    ls.text_document_publish_diagnostics(
        types.PublishDiagnosticsParams(uri, found, version=document.version)
    )


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
    found = completions(source, at, ls.follower.ranks, names)
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
