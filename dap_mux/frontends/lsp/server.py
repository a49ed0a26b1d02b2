"""The server, between an editor and the session that is followed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from lsprotocol import types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInternalError,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcServerNotInitialized,
)
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, default_converter
from pygls.uris import to_fs_path
from pygls.workspace import TextDocument

from dap_mux import __version__
from dap_mux.frontends.lsp.file_versions import Expression, FileVersions
from dap_mux.frontends.lsp.session_follower import Join, SessionFollower, StoppedRanks, Wanted
from dap_mux.system.user_files import check_regular

# Lines and columns as the editor counts them, as Python does, and as `ast` does.


class Positions:
    """One document's places; the editor and the server have agreed on what they count."""

    def __init__(self, server: LanguageServer, document: TextDocument) -> None:
        self._codec = server.workspace.position_codec
        self._lines = document.lines

    @property
    def lines(self) -> int:
        """How many lines there are."""
        return len(self._lines)

    def at(self, line: int, column: int) -> types.Position:
        """From a line and a character, both 0-based; behind the end is the end."""
        if line >= len(self._lines):
            return types.Position(line, 0)
        before = self._lines[line].rstrip("\r\n")[:column]
        return types.Position(line, self._codec.client_num_units(before))

    def whole(self, line: int) -> types.Range:
        """Return a line's text without the space in front and the end of line."""
        if line >= len(self._lines):
            return types.Range(types.Position(line, 0), types.Position(line, 0))
        text = self._lines[line].rstrip()
        return types.Range(self.at(line, len(text) - len(text.lstrip())), self.at(line, len(text)))

    def end(self, line: int) -> types.Position:
        """Return the end of a line."""
        return self.at(line, len(self._lines[line]))

    def to_ast(self, position: types.Position) -> tuple[int, int]:
        """Return a line from 1 and a column in bytes."""
        found = self._codec.position_from_client_units(self._lines, position)
        line = self._lines[found.line] if found.line < len(self._lines) else ""
        return found.line + 1, len(line[: found.character].encode())

    def of(self, found: Expression) -> types.Range:
        """Return where an expression stands."""
        return self.between((found.line - 1, found.column), (found.end_line - 1, found.end_column))

    def from_bytes(self, line: int, column: int) -> types.Position:
        """From a line and a column in bytes, both 0-based."""
        text = self._lines[line] if line < len(self._lines) else ""
        return self.at(line, len(text.encode()[:column].decode(errors="ignore")))

    def between(self, start: tuple[int, int], end: tuple[int, int]) -> types.Range:
        """From two such places."""
        return types.Range(self.from_bytes(*start), self.from_bytes(*end))


# Background work that follows changes: one run at a time, for all that has changed meanwhile.

Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]


class Coalescer:
    """Runs the work of each key; `start_task` runs a coroutine in the background."""

    def __init__(self, start_task: Callable[[Coroutine[Any, Any, None]], None]) -> None:
        self._start_task = start_task
        self._running: set[Hashable] = set()
        self._again: set[Hashable] = set()

    def run(self, key: Hashable, work: Work) -> None:
        """Start the work; if it is running, it runs once more afterwards."""
        if key in self._running:
            self._again.add(key)
            return
        self._running.add(key)
        self._start_task(self._run(key, work))

    async def _run(self, key: Hashable, work: Work) -> None:
        try:
            await work()
            while key in self._again:
                self._again.discard(key)
                await work()
        finally:
            self._running.discard(key)
            self._again.discard(key)


# JSON-RPC as pygls has it, but that requests which cannot be handled are answered.

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MalformedRequest:
    """A request whose parameters are not those of its method."""

    id: int | str
    method: str


class LspProtocol(LanguageServerProtocol):
    """A protocol that refuses requests which are malformed or come at the wrong time.

    pygls tells the user of malformed ones instead, and ignores those after `shutdown`: an editor
    would wait for the response.
    """

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Decode a message. Raises JsonRpcException for a malformed notification or response."""
        try:
            return super().structure_message(data)
        except JsonRpcException:
            id, method = data.get("id"), data.get("method")
            if not isinstance(id, int | str) or not isinstance(method, str):
                raise
            return MalformedRequest(id, method)

    def handle_message(self, message: Any) -> None:
        """Handle a decoded message."""
        refusal = self._refusal(message)
        if refusal is None:
            super().handle_message(message)
            return
        log.info("%s", refusal)
        if hasattr(message, "id"):
            self._send_response(message.id, error=refusal.to_response_error())

    def _refusal(self, message: Any) -> JsonRpcException | None:
        """Return why a request or a notification is not handled."""
        method = getattr(message, "method", None)
        if method is None or method == types.EXIT:
            return None
        if self._shutdown:
            return JsonRpcInvalidRequest(f"{method} after shutdown")
        if self._workspace is None and method != types.INITIALIZE:
            return JsonRpcServerNotInitialized(f"{method} before initialize")
        if isinstance(message, MalformedRequest):
            return JsonRpcInvalidParams(f"malformed parameters of {method}")
        return None


REFRESH: Final = "refresh"
BYTE_ORDER_MARK: Final = "\ufeff"


def diagnostic(
    where: types.Range,
    message: str,
    severity: types.DiagnosticSeverity = types.DiagnosticSeverity.Warning,
) -> types.Diagnostic:
    """Return a diagnostic of ours."""
    return types.Diagnostic(where, message, severity, source="dap-mux")


class Server(LanguageServer):
    """A language server that follows a session: `session` (HOST:PORT), or the newest one.

    `publish_problems` is called whenever the ranks have changed.
    """

    def __init__(
        self,
        join: Join,
        publish_problems: Callable[[Server], None],
        session: str | None = None,
    ) -> None:
        super().__init__(
            "dap-mux", __version__, protocol_cls=LspProtocol, converter_factory=default_converter
        )
        self.exit_code = 0
        self.shut_down = False
        self.follower = SessionFollower(join, self.ranks_changed)
        self.options: object = None
        self.configuration = ""
        self._given = session
        self.documents_with_problems: set[str] = set()  # URIs of files with such breakpoints
        self.launch_files_to_mend: set[str] = set()  # URIs; a mapping would help a breakpoint
        self._published: set[str] = set()  # URIs with diagnostics
        self.versions: dict[str, FileVersions] = {}  # of open documents, by URI
        self._publish_problems = publish_problems
        self._shown = 0  # the revision of ranks that the editor shows
        self._tasks: set[asyncio.Task[None]] = set()
        self.coalescer = Coalescer(self.start_task)

    # The session

    async def prefer(self, settings: object) -> None:
        """Apply `{"session": "HOST:PORT"}`; null or nothing means the newest session.

        `configuration` is the name of the launch configuration that the session was started with.
        """
        given = settings if isinstance(settings, dict) else {}
        texts = {key: text for key, text in given.items() if isinstance(text, str) and text}
        self.configuration = texts.get("configuration", "")
        session = texts.get("session", self._given)
        await self.follower.prefer(Wanted(session, texts.get("token")))

    def ranks_changed(self) -> None:
        """Publish problems, and refresh the editor if what it shows is outdated."""
        self._publish_problems(self)
        if self._shown != self.follower.ranks.revision:
            self.coalescer.run(REFRESH, self._refresh)

    async def _refresh(self) -> None:
        self._shown = self.follower.ranks.revision
        workspace = self.client_capabilities.workspace
        if workspace and workspace.inlay_hint and workspace.inlay_hint.refresh_support:
            await self.workspace_inlay_hint_refresh_async(None)
        if workspace and workspace.code_lens and workspace.code_lens.refresh_support:
            await self.workspace_code_lens_refresh_async(None)

    def start_task(self, work: Any) -> None:
        """Run a task in the background, and keep a reference to it."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Report an error to the editor, unless reporting itself has failed."""
        if source is not JsonRpcInternalError:
            super().report_server_error(error, source)

    # Texts

    def document(self, uri: str) -> TextDocument | None:
        """Return a document as the editor has it, or else as on disk; None without either."""
        opened = self.open_document(uri)
        if opened is not None:
            return opened
        document = self.workspace.get_text_document(uri)
        try:
            check_regular(path := Path(document.path), path.stat())
            text = document.source
        except (OSError, ValueError):  # for example, not UTF-8
            return None
        codec = self.workspace.position_codec
        return TextDocument(uri, text.removeprefix(BYTE_ORDER_MARK), position_codec=codec)

    def open_document(self, uri: str) -> TextDocument | None:
        """Return a document that the editor has open."""
        opened: TextDocument | None = self.workspace.text_documents.get(unquote(uri))
        return opened

    def publish(self, uri: str, found: list[types.Diagnostic], version: int | None = None) -> None:
        """Publish the diagnostics of a document, unless it has none and had none."""
        if found or uri in self._published or version is not None:
            params = types.PublishDiagnosticsParams(uri, found, version)
            self.text_document_publish_diagnostics(params)
        (self._published.add if found else self._published.discard)(uri)

    def stopped_in(self, document: TextDocument) -> list[StoppedRanks]:
        """Return the ranks stopped in a document, at the lines that it has in the editor."""
        path = to_fs_path(document.uri)
        if not path:
            return []
        versions = self.versions.get(document.uri)
        if versions is None:
            return self.follower.ranks.stopped_in(path)
        versions.look()
        return self.follower.ranks.stopped_in(
            path, lambda line, started: versions.line_now(line, started, document.source)
        )

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
