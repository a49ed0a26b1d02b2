"""Completions at the cursor of a console's line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final, TypeAlias

from dap_mux.console.commands import COMMANDS, Command
from dap_mux.console.rank_tracker import RankTracker
from dap_mux.rank_sets import complete

Names: TypeAlias = "Iterable[tuple[str, str]]"
"""Named rank sets, and the ranks in them."""

ARGUMENT_VALUES: Final = {
    "scope": ("auto", "rank", "class", "all"),
    "view": ("auto", "ranks", "classes"),
    "clear": ("all",),
    "list": ("classes", "full"),
}
RANK_SET_COMMANDS: Final = "list attach cast compare focus pause release stacks wait why".split()
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
