"""The console on a terminal: editing, history, completion and asynchronous output.

Text that is printed while the prompt is shown appears above it, so the ranks' output and the
console can share a terminal.
"""

from __future__ import annotations

import asyncio
import os
import sys
import termios
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Final, TypeAlias

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.styles import Style

from dap_mux.frontends.console.commands import COMMANDS, Command
from dap_mux.frontends.console.console import Console
from dap_mux.frontends.console.session_client import RankTracker
from dap_mux.pure.printable import one_line
from dap_mux.pure.rank_sets import complete

# Completions at the cursor of a console's line.

Names: TypeAlias = "Iterable[tuple[str, str]]"
"""Named rank sets, and the ranks in them."""

ARGUMENT_VALUES: Final = {
    "scope": ("auto", "rank", "class", "all"),
    "view": ("auto", "ranks", "classes"),
    "clear": ("all",),
    "list": ("classes", "full"),
}
RANK_SET_COMMANDS: Final = "list on attach cast compare focus pause release stacks wait why".split()
MAX_FILES: Final = 200


def candidates(text: str, tracker: RankTracker, names: Names = ()) -> tuple[int, list[str]]:
    """Return where the last argument of `text` begins, and its completions.

    At a rank prompt, commands follow a percent sign; anything else is completed by the ranks
    (`RankPrompt.complete`).
    """
    sign = text.startswith("%")
    line = text[sign:]
    typed, space, rest = line.partition(" ")
    if not space:
        return int(sign), [_with_space(each) for each in COMMANDS if each.name.startswith(typed)]
    name = next((each.name for each in COMMANDS if typed in (each.name, *each.aliases)), "")
    start = len(text) - len(rest)
    at = max(rest.rfind(" ") + 1, 0)
    plain = [value for value in ARGUMENT_VALUES.get(name, ()) if value.startswith(rest[at:])]
    if name == "break":
        return start, list(_files(rest))
    found = _rank_sets(rest, tracker, names) if name in RANK_SET_COMMANDS else []
    if found:
        return start + found[0][0], [text for _, text in found] + plain
    return start + at, plain


def _with_space(command: Command) -> str:
    """Return the name, with a space if arguments may follow."""
    return command.name + (" " if " " in command.usage else "")


def _rank_sets(rest: str, tracker: RankTracker, names: Names) -> list[tuple[int, str]]:
    found = complete(rest, len(rest), tracker.world(names))
    return [(each.start, each.text) for each in found if each.start == found[0].start]


def _files(beginning: str) -> Iterable[str]:
    """Complete a Python file, with the colon before its line number, or a folder."""
    folder, _, stem = beginning.rpartition("/")
    try:
        entries = sorted(Path(folder or ("/" if "/" in beginning else ".")).iterdir())[:MAX_FILES]
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith(stem) and (stem or not entry.name.startswith(".")):
            prefix = f"{folder}/" if "/" in beginning else ""
            if entry.is_dir():
                yield f"{prefix}{entry.name}/"
            elif entry.suffix == ".py":
                yield f"{prefix}{entry.name}:"


# Keeps what the user types while a command runs, so that Ctrl-C does not drop it.
#
# By itself a terminal drops what it has not delivered yet when Ctrl-C sends its signal.

LOCAL_FLAGS: Final = 3
"""The place of the local flags among a terminal's attributes."""


@contextmanager
def kept_on_interrupt(descriptor: int) -> Iterator[None]:
    """Keep a terminal's input on Ctrl-C within the block; no effect on what is no terminal."""
    try:
        flags = termios.tcgetattr(descriptor)[LOCAL_FLAGS]
    except termios.error:
        yield
        return
    _set(descriptor, termios.NOFLSH)
    try:
        yield
    finally:
        _set(descriptor, flags & termios.NOFLSH)


def _set(descriptor: int, kept: int) -> None:
    """Change nothing else: meanwhile others may have changed the rest."""
    with suppress(termios.error):  # the terminal is gone
        attributes = termios.tcgetattr(descriptor)
        attributes[LOCAL_FLAGS] = attributes[LOCAL_FLAGS] & ~termios.NOFLSH | kept
        termios.tcsetattr(descriptor, termios.TCSANOW, attributes)


STYLE: Final = Style.from_dict(
    {
        "prompt": "bold ansigreen",
        "held": "bold ansired",
        "bottom-toolbar": "noreverse ansibrightblack",
    }
)


class Terminal:
    """One console on this process's terminal."""

    way_back = "Ctrl-C"  # here it is a key

    def __init__(self, console: Console, history: History) -> None:
        self._console = console
        self._prompt: PromptSession[str] = PromptSession(
            history=history,
            auto_suggest=AutoSuggestFromHistory(),
            completer=_ConsoleCompleter(console),
            complete_while_typing=False,
            bottom_toolbar=lambda: FormattedText([("", one_line(console.status))]),
            style=STYLE,
        )
        console.edited_in(self)

    async def converse(self, first: str) -> None:
        """Handle `first`, then what is typed, until the user leaves or the session ends."""
        # The screen has escaped control characters already.
        # Ctrl-C drops what was typed ahead, where a line could move ranks of a set.
        keeps = self._console.set is None
        kept = kept_on_interrupt(sys.stdin.fileno()) if keeps else nullcontext()
        with patch_stdout(raw=True), kept:
            self._console.greet()
            await self._console.handle(first)
            while not self._console.ended.is_set():
                line = await self._line()
                if line is not None:
                    interrupts = self._console.interrupts
                    await self._console.handle(line)
                    if not keeps and self._console.interrupts != interrupts:
                        clear_typeahead(self._prompt.app.input)
                elif self._console.attached and not self._console.ended.is_set():
                    self._console.detach()
                else:
                    break
            await self._console.leave()
            sys.stdout.flush()

    @property
    def _style(self) -> str:
        return "class:held" if self._console.is_held else "class:prompt"

    async def _line(self) -> str | None:
        """Read a line; Ctrl-C discards what was typed, and Ctrl-D returns None."""
        try:
            return await self._prompt.prompt_async(
                lambda: FormattedText([(self._style, self._console.prompt)]),
                handle_sigint=False,
                set_exception_handler=False,
            )
        except KeyboardInterrupt:
            await self._console.key_interrupt()
            return ""
        except EOFError:
            return None

    def discard_input(self) -> bool:
        """Discard what was typed, for a Ctrl-C that came as a signal.

        While the prompt is shown Ctrl-C is a key; it is a signal between two prompts, and while
        text is printed above the prompt. Until the console ends the signal must be handled here,
        because it would end the job.
        """
        if self._console.ended.is_set():
            return False
        app = self._prompt.app
        if app.is_running and app.future and not app.future.done():
            app.exit(exception=KeyboardInterrupt)
        return True

    def refresh(self) -> None:
        """Draw the prompt again, or leave it once the console has ended."""
        app = self._prompt.app
        if not app.is_running:
            return
        if self._console.ended.is_set():
            if app.future and not app.future.done():
                app.exit(exception=EOFError)
        else:
            app.invalidate()


class _ConsoleCompleter(Completer):
    """Completes commands, and at a rank prompt the names of that rank."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> list[Completion]:
        """Complete the console's own commands."""
        console, text = self._console, document.text_before_cursor
        return _completions(text, candidates(text, console.client.ranks, console.named_sets))

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Complete at the cursor; at a rank prompt the rank knows the names."""
        text, attached = document.text_before_cursor, self._console.attached
        if attached and not text.startswith("%"):
            found = _completions(text, await attached.complete(text))
        else:
            found = self.get_completions(document, complete_event)
        for completion in found:
            yield completion


def _completions(text: str, found: tuple[int, list[str]]) -> list[Completion]:
    start, texts = found
    return [Completion(each, start_position=start - len(text)) for each in texts]


def history(environ: Mapping[str, str], home: Path) -> History:
    """Return the history of this user's consoles, in a file that only they can read."""
    given = Path(environ.get("XDG_STATE_HOME", ""))
    folder = (given if given.is_absolute() else home / ".local" / "state") / "dap-mux"
    path = folder / "history"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)


async def on_terminal(
    console: Console, environ: Mapping[str, str], home: Path, first: str = ""
) -> None:
    """Run the console on this terminal; `first`: a line that is run before any is typed."""
    await Terminal(console, await asyncio.to_thread(history, environ, home)).converse(first)
