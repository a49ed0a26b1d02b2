"""What a command of the console is, and finding the one that a word means."""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dap_mux.errors import UsageError

if TYPE_CHECKING:
    from dap_mux.console.console import Console


@dataclass(frozen=True)
class Command:
    """One command: what `help` says of it, and what it does with the rest of the line."""

    name: str
    usage: str
    summary: str
    run: Callable[[Console, str], Awaitable[None]]
    aliases: tuple[str, ...] = ()


def lookup(word: str, commands: Sequence[Command]) -> Command:
    """Find a command by its name or alias. Raises UsageError with what was likely meant."""
    for command in commands:
        if word == command.name or word in command.aliases:
            return command
    names = [name for command in commands for name in (command.name, *command.aliases)]
    close = difflib.get_close_matches(word, names, n=1)
    meant = f"did you mean {close[0]!r}?" if close else "'help' lists them."
    raise UsageError(
        f"there is no command {word!r}: {meant} Ranks are told things by "
        "'cast RANKS COMMAND', or after 'attach RANK'"
    )


def split(line: str) -> tuple[str, str]:
    """Cut a line into its first word and the rest."""
    word, _, rest = line.strip().partition(" ")
    return word, rest.strip()


def nothing_more(rest: str, name: str) -> None:
    """Raise UsageError where a command that takes no words has got some."""
    if rest:
        raise UsageError(f"{name!r} stands alone")


def help_text(commands: Sequence[Command]) -> str:
    """Return the commands in columns, with their other names."""
    width = max(len(command.usage) for command in commands)
    return "\n".join(
        f"  {command.usage.ljust(width)}  {command.summary}"
        + (f" [{', '.join(command.aliases)}]" if command.aliases else "")
        for command in commands
    )
