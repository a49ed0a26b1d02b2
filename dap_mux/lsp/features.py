"""The table of features: what the editor may ask, and who answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from lsprotocol import types

from dap_mux.lsp import in_text
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
    """The editor's settings are others now."""
    settings = params.settings
    await ls.prefer(settings.get(SETTINGS) if isinstance(settings, dict) else None)


FEATURES: Final[tuple[tuple[str, Callable[..., Any], Any], ...]] = (
    (types.INITIALIZE, initialize, None),
    (types.INITIALIZED, initialized, None),
    (types.WORKSPACE_DID_CHANGE_CONFIGURATION, configured, None),
    (types.TEXT_DOCUMENT_INLAY_HINT, in_text.hints, None),
    (types.TEXT_DOCUMENT_HOVER, in_text.hover, None),
)


def make_server(join: Join, session: str | None = None) -> Server:
    """Build the server; `join` is the way into a session, `session` the one to follow."""
    server = Server(join, session)
    for name, handler, options in FEATURES:
        server.feature(name, options)(handler)
    return server
