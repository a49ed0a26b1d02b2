"""What may stand at the cursor of a console's line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final, TypeAlias

from dap_mux.console.commands import COMMANDS
from dap_mux.console.picture import Picture
from dap_mux.console.words import Command
from dap_mux.rank_sets import Mesh, RankSetError, World, complete, parse

Names: TypeAlias = "Iterable[tuple[str, str]]"
"""Named sets, and the ranks in them."""

VALUES: Final = {
    "scope": ("auto", "rank", "class", "all"),
    "view": ("auto", "ranks", "classes"),
    "clear": ("all",),
    "list": ("classes", "full"),
}
RANKS: Final = ("list", "attach", "cast", "compare", "focus", "pause", "release", "wait")
MOST_FILES: Final = 200


def candidates(text: str, picture: Picture, names: Names = ()) -> tuple[int, list[str]]:
    """Return where the word at the end of `text` begins, and what it may become.

    At a prompt on ranks words stand behind a percent sign; what stands there without one is the
    ranks' to complete (`Attached.complete`).
    """
    sign = text.startswith("%")
    line = text[sign:]
    word, space, rest = line.partition(" ")
    if not space:
        return int(sign), [_with_space(one) for one in COMMANDS if one.name.startswith(word)]
    name = next((one.name for one in COMMANDS if word in (one.name, *one.aliases)), "")
    start = len(text) - len(rest)
    at = max(rest.rfind(" ") + 1, 0)
    plain = [value for value in VALUES.get(name, ()) if value.startswith(rest[at:])]
    if name == "break":
        return start, list(_files(rest))
    found = _rank_sets(rest, picture, names) if name in RANKS else []
    if found:
        return start + found[0][0], [text for _, text in found] + plain
    return start + at, plain


def _with_space(command: Command) -> str:
    """Its name, ready for what follows, where something does."""
    return command.name + (" " if " " in command.usage else "")


def _rank_sets(rest: str, picture: Picture, names: Names) -> list[tuple[int, str]]:
    try:
        world = world_of(picture, names)
        found = complete(rest, len(rest), world)
    except (RankSetError, ValueError):
        return []
    return [(one.start, one.text) for one in found if one.start == found[0].start]


def world_of(picture: Picture, names: Names) -> World:
    """Return the ranks of the picture as rank sets see them."""
    states = {id: str(row["state"]) for id, row in picture.rows.items()}
    sets = {name: parse(ranks) for name, ranks in names if ranks}
    return World(tuple(sorted(picture.rows)), _meshes(picture), states, sets)


def _meshes(picture: Picture) -> dict[str, Mesh]:
    """Return each group's mesh, as its ranks' places tell it."""
    sizes: dict[str, dict[str, int]] = {}
    for (group, _), row in picture.rows.items():
        for dim, place in (row["coords"] or {}).items():
            dims = sizes.setdefault(group, {})
            dims[dim] = max(dims.get(dim, 0), place + 1)
    return {group: Mesh(tuple(dims.items())) for group, dims in sizes.items()}


def _files(beginning: str) -> Iterable[str]:
    """Python files here that begin so, each with the colon before its line number."""
    folder, _, stem = beginning.rpartition("/")
    try:
        entries = sorted(Path(folder or ("/" if "/" in beginning else ".")).iterdir())[:MOST_FILES]
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith(stem) and (stem or not entry.name.startswith(".")):
            prefix = f"{folder}/" if "/" in beginning else ""
            if entry.is_dir():
                yield f"{prefix}{entry.name}/"
            elif entry.suffix == ".py":
                yield f"{prefix}{entry.name}:"
