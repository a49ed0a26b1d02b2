"""The table of features: what the editor may ask, and who answers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from lsprotocol import types

from dap_mux.lsp import in_launch, in_text, problems
from dap_mux.lsp.following import Join
from dap_mux.lsp.server import Server

SETTINGS: Final = "dap-mux"


def initialize(ls: Server, params: types.InitializeParams) -> None:
    """Keep the editor's options until it is ready."""
    ls.options = params.initialization_options


async def initialized(ls: Server, _: types.InitializedParams) -> None:
    """The editor is ready."""
    await ls.start()


async def configured(ls: Server, params: types.DidChangeConfigurationParams) -> None:
    """The editor's settings are others now; some editors send empty ones at the start."""
    ours = params.settings.get(SETTINGS) if isinstance(params.settings, dict) else None
    if isinstance(ours, dict) and "session" in ours:
        await ls.prefer(ours)


FIXES: Final = types.CodeActionOptions([types.CodeActionKind.QuickFix])
OFFERS: Final = types.CompletionOptions(trigger_characters=in_launch.TRIGGERS)
FEATURES: Final[tuple[tuple[str, Callable[..., Any], Any], ...]] = (
    (types.INITIALIZE, initialize, None),
    (types.INITIALIZED, initialized, None),
    (types.WORKSPACE_DID_CHANGE_CONFIGURATION, configured, None),
    (types.TEXT_DOCUMENT_INLAY_HINT, in_text.hints, None),
    (types.TEXT_DOCUMENT_HOVER, in_text.hover, None),
    (types.TEXT_DOCUMENT_CODE_LENS, in_text.lenses, None),
    (types.TEXT_DOCUMENT_CODE_ACTION, problems.actions, FIXES),
    (types.TEXT_DOCUMENT_DID_OPEN, in_launch.opened, None),
    (types.TEXT_DOCUMENT_DID_CHANGE, in_launch.changed, None),
    (types.TEXT_DOCUMENT_DID_CLOSE, in_launch.closed, None),
    (types.TEXT_DOCUMENT_COMPLETION, in_launch.complete, OFFERS),
)


def make_server(join: Join, session: str | None = None) -> Server:
    """Build the server; `join` is the way into a session, `session` the one to follow."""
    # pygls warns of what editors may well say: a reply after `shutdown`, a cancellation that comes
    # too late. It would reach the standard error, which editors show as our errors.
    logging.getLogger("pygls").setLevel(logging.ERROR)
    server = Server(join, session)
    for name, handler, options in FEATURES:
        server.feature(name, options)(handler)
    server.command(in_text.RUN_ALL_HERE)(in_text.run_all_here)
    server.when_changed = problems.publish
    return server
