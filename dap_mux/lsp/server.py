"""The server: an editor at one end, the session that is followed at the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInternalError
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from dap_mux import __version__
from dap_mux.lsp.following import Following, Join
from dap_mux.lsp.picture import Standing


class Server(LanguageServer):
    """A language server with a session to follow, `session` (HOST:PORT) or whichever runs."""

    def __init__(self, join: Join, session: str | None = None) -> None:
        super().__init__("dap-mux", __version__)
        self.following = Following(join, self.ranks_changed)
        self.options: object = None
        self._given = session
        self.complained: set[str] = set()  # documents with problems of breakpoints
        self.when_changed: Callable[[Server], None] = lambda server: None
        self._shown = 0  # moves of ranks that the editor knows of
        self._tasks: set[asyncio.Task[None]] = set()
        self._refreshing = asyncio.Lock()

    # The session

    async def start(self) -> None:
        """The editor is ready: follow the session that its `options` name, if they do."""
        await self.prefer(self.options)
        self.soon(self.following.run())

    async def prefer(self, settings: object) -> None:
        """Take `{"session": "HOST:PORT"}` to heart; null or nothing means whichever runs."""
        named = settings.get("session") if isinstance(settings, dict) else None
        await self.following.prefer(named if isinstance(named, str) and named else self._given)

    def ranks_changed(self) -> None:
        """Let the editor ask again, if what it shows is another now, and tell it of problems."""
        self.when_changed(self)
        if self._shown != self.following.picture.moves:
            self.soon(self._refresh())

    async def _refresh(self) -> None:
        """One after another: what changes during a refresh is in the next one."""
        if self._refreshing.locked():
            return
        async with self._refreshing:
            while self._shown != self.following.picture.moves:
                self._shown = self.following.picture.moves
                for refresh in self._refreshes():
                    await refresh(None)

    def _refreshes(self) -> list[Callable[[None], Awaitable[None]]]:
        workspace = self.client_capabilities.workspace
        hints = workspace and workspace.inlay_hint
        lenses = workspace and workspace.code_lens
        found: list[Callable[[None], Awaitable[None]]] = []
        if hints and hints.refresh_support:
            found.append(self.workspace_inlay_hint_refresh_async)
        if lenses and lenses.refresh_support:
            found.append(self.workspace_code_lens_refresh_async)
        return found

    def soon(self, work: Any) -> None:
        """Do it beside everything else; the loop alone would forget the task."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Tell the editor, unless telling is what went wrong: that would never end."""
        if source is not JsonRpcInternalError:
            super().report_server_error(error, source)

    # Texts

    def standing(self, uri: str) -> list[Standing]:
        """Return who stands in a document."""
        path = to_fs_path(uri)
        return self.following.picture.standing(path) if path else []

    @property
    def markdown(self) -> bool:
        """Whether the editor shows Markdown in hovers."""
        about = self.client_capabilities.text_document
        formats = about and about.hover and about.hover.content_format
        return types.MarkupKind.Markdown in (formats or ())

    @property
    def may_create(self) -> bool:
        """Whether the editor lets us create files."""
        about = self.client_capabilities.workspace
        edits = about and about.workspace_edit
        kinds = edits and edits.document_changes and edits.resource_operations
        return types.ResourceOperationKind.Create in (kinds or ())
