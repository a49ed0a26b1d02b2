"""launch.json as it is typed: what is wrong with its rank sets, and what may stand there."""

from __future__ import annotations

from typing import Final

from lsprotocol import types
from pygls.uris import to_fs_path

from dap_mux.lsp.launch import complaints, is_launch, offers
from dap_mux.lsp.positions import Positions
from dap_mux.lsp.problems import SOURCE
from dap_mux.lsp.server import Server

TRIGGERS: Final = ['"', "(", "=", ",", "@", ":", "|", "&", "~"]
LIMIT: Final = 0.5  # s for the session to tell its named sets


def opened(ls: Server, params: types.DidOpenTextDocumentParams) -> None:
    """A document is open."""
    check(ls, params.text_document.uri)


def changed(ls: Server, params: types.DidChangeTextDocumentParams) -> None:
    """A document is another one."""
    check(ls, params.text_document.uri)


def closed(ls: Server, params: types.DidCloseTextDocumentParams) -> None:
    """A document is closed: what is wrong with it is shown when it is open again."""
    if is_launch(to_fs_path(params.text_document.uri) or ""):
        ls.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(params.text_document.uri, [])
        )


def check(ls: Server, uri: str) -> None:
    """Show what is wrong with a launch.json; nothing is said of other files."""
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
        for one in complaints(document.source)
    ]
    ls.text_document_publish_diagnostics(
        types.PublishDiagnosticsParams(uri, found, version=document.version)
    )


async def complete(ls: Server, asked: types.CompletionParams) -> types.CompletionList | None:
    """Offer rank sets and hosts."""
    uri = asked.text_document.uri
    if not is_launch(to_fs_path(uri) or ""):
        return None
    document = ls.workspace.get_text_document(uri)
    positions = Positions(ls, document)
    line, column = positions.to_ast(asked.position)
    at, source = (line - 1, column), document.source  # typing goes on while we ask
    body = await ls.following.ask("groups", {}, LIMIT) or {"groups": []}
    names = {one["name"]: one["definition"] for one in body["groups"]}
    found = offers(source, at, ls.following.picture, names)
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
