"""An editor for the language server: pygls's own client, over the standard streams of the command.

It keeps what it is told, and answers what it is asked.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar, Union

from cattrs import Converter
from lsprotocol import types
from pygls.lsp.client import LanguageClient
from pygls.protocol import default_converter

from dap_mux import __version__
from tests.support.processes.commands import LIMIT, User

_T = TypeVar("_T")
WHOLE: Final = types.Range(types.Position(0, 0), types.Position(1_000_000, 0))
CAPABILITIES: Final = types.ClientCapabilities(
    workspace=types.WorkspaceClientCapabilities(
        inlay_hint=types.InlayHintWorkspaceClientCapabilities(refresh_support=True),
        code_lens=types.CodeLensWorkspaceClientCapabilities(refresh_support=True),
    ),
    text_document=types.TextDocumentClientCapabilities(
        hover=types.HoverClientCapabilities(content_format=[types.MarkupKind.Markdown])
    ),
)


def converter() -> Converter:
    """As lsprotocol has it, but that a code action with a command of its own is a code action."""
    made: Converter = default_converter()  # type: ignore[no-untyped-call]

    def structured(raw: dict[str, Any], _: object) -> types.Command | types.CodeAction:
        if isinstance(raw.get("command"), str):
            return made.structure(raw, types.Command)
        return made.structure(raw, types.CodeAction)

    made.register_structure_hook(Union[types.Command, types.CodeAction], structured)  # noqa: UP007
    return made


class Editor(LanguageClient):
    """A language client that remembers. `server` is what the server has said of itself."""

    server: types.InitializeResult

    def __init__(self) -> None:
        super().__init__("tests", __version__, converter_factory=converter)
        self.refreshed = 0
        self.problems: dict[str, list[types.Diagnostic]] = {}
        self.messages: list[str] = []
        self._version = 100  # of documents, and greater than any that a test gives
        self._news = asyncio.Event()
        self.feature(types.WORKSPACE_INLAY_HINT_REFRESH)(partial(self._refresh))
        self.feature(types.WORKSPACE_CODE_LENS_REFRESH)(lambda *_: None)
        self.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(partial(self._publish))
        self.feature(types.WINDOW_SHOW_MESSAGE)(partial(self._message))
        self.feature(types.WINDOW_LOG_MESSAGE)(lambda *_: None)

    def _refresh(self, *_: object) -> None:
        self.refreshed += 1
        self._news.set()

    def _publish(self, params: types.PublishDiagnosticsParams) -> None:
        self.problems[params.uri] = list(params.diagnostics)
        self._news.set()

    def _message(self, params: types.ShowMessageParams) -> None:
        self.messages.append(params.message)
        self._news.set()

    @property
    def pid(self) -> int:
        """The server's process."""
        assert self._server is not None
        pid: int = self._server.pid
        return pid

    @property
    def code(self) -> int | None:
        """The server's exit code."""
        assert self._server is not None
        return self._server.returncode

    async def told(self) -> None:
        """Wait for the next thing that the server says by itself."""
        await asyncio.wait_for(self._news.wait(), LIMIT)
        self._news.clear()

    # Documents

    def open(self, path: str | Path, text: str | None = None) -> str:
        """Open a file, as it is or with another text; return its URI."""
        path = Path(path)
        language = "python" if path.suffix == ".py" else "jsonc"
        text = path.read_text("utf-8") if text is None else text
        item = types.TextDocumentItem(path.as_uri(), language, 1, text)
        self.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return path.as_uri()

    def rewrite(self, uri: str, text: str, version: int = 2) -> None:
        """Replace a document's text."""
        document = types.VersionedTextDocumentIdentifier(version, uri)
        change = types.TextDocumentContentChangeWholeDocument(text)
        self.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))

    def insert(self, uri: str, line: int, text: str, column: int = 1) -> None:
        """Type a text into an open document, at a line and a column from 1."""
        self._edit(uri, (line, column), (line, column), text)

    def delete_lines(self, uri: str, first: int, last: int) -> None:
        """Delete whole lines of an open document."""
        self._edit(uri, (first, 1), (last + 1, 1), "")

    def _edit(self, uri: str, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        self._version += 1
        where = types.Range(
            *(types.Position(line - 1, column - 1) for line, column in (start, end))
        )
        document = types.VersionedTextDocumentIdentifier(self._version, uri)
        change = types.TextDocumentContentChangePartial(where, text)
        self.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))

    def save(self, path: str | Path, text: str, encoding: str = "utf-8") -> None:
        """Write an open document to its file."""
        Path(path).write_text(text, encoding)
        document = types.TextDocumentIdentifier(Path(path).as_uri())
        self.text_document_did_save(types.DidSaveTextDocumentParams(document))

    def configure(self, **settings: str | None) -> None:
        """Change our settings."""
        params = types.DidChangeConfigurationParams({"dap-mux": settings})
        self.workspace_did_change_configuration(params)

    # Asking

    async def _until(
        self,
        look: Callable[[], Awaitable[_T]],
        holds: Callable[[_T], object],
        what: str,
        *,
        news: bool = True,
    ) -> _T:
        """Look until this holds, again whenever the server says something; `news=False`: at once.

        Return what was found.
        """
        found: list[_T] = []

        async def see() -> _T:
            while True:
                found[:] = [await look()]
                if holds(found[0]):
                    return found[0]
                if news:
                    await self.told()

        try:
            return await asyncio.wait_for(see(), LIMIT)
        except asyncio.TimeoutError:
            raise AssertionError(f"{what}: {found}") from None

    async def hints(self, uri: str) -> dict[int, str]:
        """The hints of a document: line from 1, and label."""
        params = types.InlayHintParams(types.TextDocumentIdentifier(uri), WHOLE)
        found = await self.text_document_inlay_hint_async(params)
        return {hint.position.line + 1: str(hint.label) for hint in found or ()}

    async def until_hints(self, uri: str, wanted: dict[int, str]) -> None:
        """Ask for hints, again whenever the server says so, until they are these."""
        await self._until(partial(self.hints, uri), lambda found: found == wanted, f"not {wanted}")

    async def hover(self, uri: str, line: int, column: int) -> str | None:
        """What a hover shows; line and column from 1."""
        at = types.Position(line - 1, column - 1)
        params = types.HoverParams(types.TextDocumentIdentifier(uri), at)
        found = await self.text_document_hover_async(params)
        if found is None:
            return None
        assert isinstance(found.contents, types.MarkupContent)
        return found.contents.value

    async def until_hover(
        self, uri: str, path: str | Path, line: int, word: str, *, silent: str = ""
    ) -> str:
        """Hover again until all answer but the ranks `silent`; return what is shown.

        A hover waits a second for ranks, and a busy machine is slower at times.
        """
        late = [f"no response from {silent}"] if silent else []

        def answered(said: str | None) -> bool:
            lines = (said or "").splitlines()
            return said is not None and [one for one in lines if "no response from" in one] == late

        look = partial(self.hover_on, uri, path, line, word)
        said = await self._until(look, answered, f"the last hover over {word!r}", news=False)
        return said or ""

    async def lenses(self, uri: str) -> dict[int, types.Command]:
        """The lenses of a document by line, from 1."""
        params = types.CodeLensParams(types.TextDocumentIdentifier(uri))
        found = await self.text_document_code_lens_async(params)
        commands = {lens.range.start.line + 1: lens.command for lens in found or ()}
        return {line: command for line, command in commands.items() if command is not None}

    async def execute(self, command: types.Command) -> None:
        """Click on a lens."""
        params = types.ExecuteCommandParams(command.command, command.arguments)
        await self.workspace_execute_command_async(params)

    async def problem(self, uri: str, words: str) -> types.Diagnostic:
        """Wait until a document has a problem with these words."""

        async def look() -> list[types.Diagnostic]:
            return [problem for problem in self.problems.get(uri, ()) if words in problem.message]

        found = await self._until(look, bool, f"no {words!r} in {self.problems}")
        return found[0]

    async def message(self, words: str) -> None:
        """Wait until the user has been shown a message with these words."""

        async def look() -> list[str]:
            return self.messages

        await self._until(look, lambda said: any(words in one for one in said), f"no {words!r}")

    async def no_problem(self, uri: str) -> None:
        """Wait until a document is said to have none."""

        async def look() -> list[types.Diagnostic] | None:
            return self.problems.get(uri)

        await self._until(look, lambda found: found == [], "problems")

    async def actions(
        self,
        uri: str,
        problem: types.Diagnostic,
        only: Sequence[types.CodeActionKind] = (types.CodeActionKind.QuickFix,),
    ) -> list[types.CodeAction]:
        """What is offered for a problem."""
        params = types.CodeActionParams(
            types.TextDocumentIdentifier(uri),
            problem.range,
            types.CodeActionContext([problem], only=only),
        )
        found = await self.text_document_code_action_async(params)
        return [one for one in found or () if isinstance(one, types.CodeAction)]

    async def completions(self, uri: str, line: int, column: int) -> list[str]:
        """What may stand at a place, line and column from 1."""
        at = types.Position(line - 1, column - 1)
        params = types.CompletionParams(types.TextDocumentIdentifier(uri), at)
        found = await self.text_document_completion_async(params)
        assert found is None or isinstance(found, types.CompletionList)
        return [item.label for item in found.items] if found else []

    async def until_completions(self, uri: str, line: int, column: int, wanted: list[str]) -> None:
        """Ask again until this is offered: a session that is late is not waited for."""
        look = partial(self.completions, uri, line, column)
        await self._until(look, lambda found: found == wanted, f"not {wanted}", news=False)

    async def hover_on(self, uri: str, path: str | Path, line: int, word: str) -> str | None:
        """What a hover shows on a word of a line."""
        before = text_of(path).splitlines()[line - 1].partition(word)[0]
        units = len(before.encode("utf-16-le")) // 2
        return await self.hover(uri, line, units + 1)


def text_of(path: str | Path) -> str:
    """A file's text."""
    return Path(path).read_text("utf-8")


def replaced(text: str, edits: Iterable[types.TextEdit]) -> str:
    """A text after edits, all of them made at once; columns in characters."""
    lines = text.splitlines(keepends=True)
    starts = [sum(map(len, lines[:number])) for number in range(len(lines) + 1)]
    for edit in sorted(edits, key=lambda edit: edit.range.start, reverse=True):
        ends = (edit.range.start, edit.range.end)
        begin, end = (starts[place.line] + place.character for place in ends)
        text = text[:begin] + edit.new_text + text[end:]
    return text


@asynccontextmanager
async def editor(
    user: User,
    *words: str,
    options: Any = None,
    folder: Path | None = None,
    capabilities: types.ClientCapabilities = CAPABILITIES,
) -> AsyncIterator[Editor]:
    """An editor that has started `dap-mux lsp WORDS` for a user, and ends it properly."""
    client = Editor()
    command = [sys.executable, "-m", "dap_mux", "lsp", *words]
    await client.start_io(*command, env=user.environ, cwd=user.folder)
    where = (folder or user.folder).as_uri()
    params = types.InitializeParams(
        capabilities=capabilities,
        workspace_folders=[types.WorkspaceFolder(where, "work")],
        initialization_options=options,
    )
    client.server = await asyncio.wait_for(client.initialize_async(params), LIMIT)
    client.initialized(types.InitializedParams())
    try:
        yield client
    finally:
        await asyncio.wait_for(client.shutdown_async(None), LIMIT)
        client.exit(None)
        await client.stop()  # type: ignore[no-untyped-call]
        assert client.code == 0
