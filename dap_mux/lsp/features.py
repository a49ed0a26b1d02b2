"""The table of features: each LSP method and its handler."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from lsprotocol import types
from pygls.uris import to_fs_path

from dap_mux.lsp import launch_json_features, problems, source_features
from dap_mux.lsp.file_versions import FileVersions
from dap_mux.lsp.server import Server
from dap_mux.lsp.session_follower import Join

SETTINGS: Final = "dap-mux"
PYTHON: Final = "python"


def initialize(ls: Server, params: types.InitializeParams) -> None:
    """Keep the editor's options until `initialized`."""
    ls.options = params.initialization_options


async def initialized(ls: Server, _: types.InitializedParams) -> None:
    """Start to follow sessions."""
    await ls.start()


async def configured(ls: Server, params: types.DidChangeConfigurationParams) -> None:
    """Apply changed settings; some editors send empty ones at the start."""
    ours = params.settings.get(SETTINGS) if isinstance(params.settings, dict) else None
    if isinstance(ours, dict) and "session" in ours:
        await ls.prefer(ours)


def shutdown(ls: Server, *_: None) -> None:
    """Expect `exit`."""
    ls.note_shutdown()


def leave(ls: Server, *_: None) -> None:
    """`exit`: pygls ends the process."""
    ls.note_exit()


def opened(ls: Server, params: types.DidOpenTextDocumentParams) -> None:
    """Remember what the file contains from now on."""
    document = params.text_document
    path = to_fs_path(document.uri)
    if path and document.language_id == PYTHON:
        ls.versions[document.uri] = FileVersions(path, document.text)
    launch_json_features.check(ls, document.uri)


def changed(ls: Server, params: types.DidChangeTextDocumentParams) -> None:
    """Check the document again."""
    launch_json_features.check(ls, params.text_document.uri)


def saved(ls: Server, params: types.DidSaveTextDocumentParams) -> None:
    """Ranks that start from now on run another text."""
    uri = params.text_document.uri
    if uri in ls.versions:
        ls.versions[uri].look()
    launch_json_features.check(ls, uri)


def closed(ls: Server, params: types.DidCloseTextDocumentParams) -> None:
    """Forget the document."""
    uri = params.text_document.uri
    ls.versions.pop(uri, None)
    launch_json_features.check(ls, uri)


FIXES: Final = types.CodeActionOptions([types.CodeActionKind.QuickFix])
OFFERS: Final = types.CompletionOptions(trigger_characters=launch_json_features.TRIGGERS)
FEATURES: Final[tuple[tuple[str, Callable[..., Any], Any], ...]] = (
    (types.INITIALIZE, initialize, None),
    (types.INITIALIZED, initialized, None),
    (types.SHUTDOWN, shutdown, None),
    (types.EXIT, leave, None),
    (types.WORKSPACE_DID_CHANGE_CONFIGURATION, configured, None),
    (types.TEXT_DOCUMENT_INLAY_HINT, source_features.hints, None),
    (types.TEXT_DOCUMENT_HOVER, source_features.hover, None),
    (types.TEXT_DOCUMENT_CODE_LENS, source_features.lenses, None),
    (types.TEXT_DOCUMENT_CODE_ACTION, problems.actions, FIXES),
    (types.TEXT_DOCUMENT_DID_OPEN, opened, None),
    (types.TEXT_DOCUMENT_DID_CHANGE, changed, None),
    (types.TEXT_DOCUMENT_DID_SAVE, saved, None),
    (types.TEXT_DOCUMENT_DID_CLOSE, closed, None),
    (types.TEXT_DOCUMENT_COMPLETION, launch_json_features.complete, OFFERS),
)


def make_server(join: Join, session: str | None = None) -> Server:
    """Build the server; `join` joins a session, `session` is the one to follow."""
    # pygls warns of legitimate messages: a reply after `shutdown`, a late cancellation. Editors
    # would show the warnings on standard error as our errors.
    logging.getLogger("pygls").setLevel(logging.ERROR)
    server = Server(join, problems.publish, session)
    for name, handler, options in FEATURES:
        server.feature(name, options)(handler)
    server.command(source_features.RUN_ALL_HERE)(source_features.run_all_here)
    server.command(problems.MAPPING_WRITTEN)(problems.mapping_written)
    return server
