"""What the words of pdb evaluate in ranks, told from what users ask."""

from __future__ import annotations

import re
from typing import Final

from dap_mux.engine.commands.pdb import expressions
from dap_mux.insight import clocks


def _pattern(template: str) -> re.Pattern[str]:
    """A template as a pattern: each field a group, doubled braces single."""
    pieces = re.split(r"\{(\w*(?:!r)?)\}", template)
    texts = [re.escape(piece.replace("{{", "{").replace("}}", "}")) for piece in pieces[::2]]
    return re.compile(r"(.*?)".join(texts), re.DOTALL)


def _literal(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text))


_NAMES: Final = {
    "arguments": _pattern(expressions.ARGUMENTS),
    "long list": _pattern(expressions.LONG_LIST),
    "list": _pattern(expressions.LIST),
    "line": _pattern(expressions.LINE),
    "lines from": _pattern(expressions.LINES_FROM),
    "clocks, longer": _literal(clocks.look(extends=True)),
    "clocks": _literal(clocks.look(extends=False)),
    "clocks, as before": _literal(clocks.put_back()),
    **{word: _pattern(text) for word, text in expressions.OF_VALUE.items()},
}


def words_meaning(expression: str) -> tuple[str, tuple[str, ...]] | None:
    """Return which of ours this is, and what was filled in; None for a user's own."""
    for name, pattern in _NAMES.items():
        found = pattern.fullmatch(expression)
        if found:
            return name, tuple(text.strip("'\n") for text in found.groups())
    return None


def short(expression: str) -> str:
    """Return `<line 7>` for one of ours, anything else as it is."""
    ours = words_meaning(expression)
    return f"<{' '.join([ours[0], *ours[1]])}>" if ours else expression
