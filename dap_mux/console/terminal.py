"""The console on a terminal: editing, history, completion, and lines that come by themselves.

While the prompt stands, whatever else is printed appears above it; so the ranks' output and the
console can share a terminal.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Final

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.styles import Style

from dap_mux.console.completion import candidates
from dap_mux.console.console import Console
from dap_mux.printable import one_line

STYLE: Final = Style.from_dict(
    {"prompt": "bold ansigreen", "bottom-toolbar": "noreverse ansibrightblack"}
)


class Terminal:
    """One console on this process's terminal."""

    def __init__(self, console: Console, history: History) -> None:
        self._console = console
        self._prompt: PromptSession[str] = PromptSession(
            history=history,
            auto_suggest=AutoSuggestFromHistory(),
            completer=_Candidates(console),
            complete_while_typing=False,
            bottom_toolbar=lambda: FormattedText([("", one_line(console.status))]),
            style=STYLE,
        )
        console.on_change = self._changed
        console.on_idle_interrupt = self._forget

    async def converse(self) -> None:
        """Read lines until the user, or the console, leaves."""
        with patch_stdout(raw=True):  # what is printed has lost its control characters already
            self._console.greet()
            while not self._console.over.is_set():
                line = await self._line()
                if line is not None:
                    await self._console.handle(line)
                elif self._console.attached and not self._console.over.is_set():
                    self._console.detach()
                else:
                    break
            await self._console.leave()
            sys.stdout.flush()

    async def _line(self) -> str | None:
        """Wait for a line; Ctrl-C forgets what is typed, and Ctrl-D is None."""
        try:
            return await self._prompt.prompt_async(
                lambda: FormattedText([("class:prompt", self._console.prompt)]),
                handle_sigint=False,
                set_exception_handler=False,
            )
        except KeyboardInterrupt:
            return ""
        except EOFError:
            return None

    def _forget(self) -> bool:
        """Forget what is typed: a Ctrl-C is a key while the prompt stands, else a signal.

        It stands not between two prompts, nor for a moment whenever something is printed above
        it. Until the console is over that signal is ours: it would end the job.
        """
        if self._console.over.is_set():
            return False
        app = self._prompt.app
        if app.is_running and app.future and not app.future.done():
            app.exit(exception=KeyboardInterrupt)
        return True

    def _changed(self) -> None:
        app = self._prompt.app
        if not app.is_running:
            return
        if self._console.over.is_set():
            if app.future and not app.future.done():
                app.exit(exception=EOFError)
        else:
            app.invalidate()


class _Candidates(Completer):
    def __init__(self, console: Console) -> None:
        self._console = console

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> list[Completion]:
        """Complete a word of the console's own."""
        console, text = self._console, document.text_before_cursor
        return _completions(text, candidates(text, console.link.picture, console.names))

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Complete the word at the cursor; at a rank's prompt the rank knows the names."""
        text, attached = document.text_before_cursor, self._console.attached
        if attached and not text.startswith("%"):
            found = _completions(text, await attached.complete(text))
        else:
            found = self.get_completions(document, complete_event)
        for one in found:
            yield one


def _completions(text: str, found: tuple[int, list[str]]) -> list[Completion]:
    start, words = found
    return [Completion(word, start_position=start - len(text)) for word in words]


def history(environ: Mapping[str, str], home: Path) -> History:
    """Return the history of this user's consoles, kept where only they can read it."""
    given = Path(environ.get("XDG_STATE_HOME", ""))
    folder = (given if given.is_absolute() else home / ".local" / "state") / "dap-mux"
    path = folder / "history"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)


async def on_terminal(console: Console, environ: Mapping[str, str], home: Path) -> None:
    """Talk with the user of this terminal."""
    await Terminal(console, await asyncio.to_thread(history, environ, home)).converse()
