"""A command of the console, and looking one up by name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from dap_mux.console.context import Context
from dap_mux.errors import UsageError
from dap_mux.suggestions import closest


@dataclass(frozen=True)
class Command:
    """One command: its line in `help`, and the function that gets the rest of the line."""

    name: str
    usage: str
    summary: str
    run: Callable[[Context, str], Awaitable[None]]
    aliases: tuple[str, ...] = ()


def lookup(name: str, commands: Sequence[Command]) -> Command:
    """Find a command by its name or alias. Raises UsageError with a suggestion."""
    for command in commands:
        if name == command.name or name in command.aliases:
            return command
    known = [each for command in commands for each in (command.name, *command.aliases)]
    if likely := closest(name, known):
        raise UsageError(f"unknown command {name!r}: did you mean {likely!r}?")
    raise UsageError(
        f"unknown command {name!r}: 'help' lists all commands. To send a command to ranks, use "
        "'cast RANKS COMMAND', or 'attach RANK' first"
    )


def split_command(line: str) -> tuple[str, str]:
    """Split a line into the command's name and the rest."""
    name, _, rest = line.strip().partition(" ")
    return name, rest.strip()


def no_arguments(rest: str, name: str) -> None:
    """Raise UsageError when a command without arguments was given some."""
    if rest:
        raise UsageError(f"{name!r} takes no arguments")


def help_text(commands: Sequence[Command]) -> str:
    """Return the commands in columns, with their aliases."""
    width = max(len(command.usage) for command in commands)
    return "\n".join(
        f"  {command.usage.ljust(width)}  {command.summary}"
        + (f" [{', '.join(command.aliases)}]" if command.aliases else "")
        for command in commands
    )
