"""The one place where answers are bounded, and where texts of ranks are made harmless."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Final

from dap_mux.pure.errors import DapMuxError, NothingToConnect, Refused, UsageError
from dap_mux.pure.printable import one_line
from dap_mux.rank.redaction import redacted

Body = dict[str, Any]
LIMIT: Final = 8192
"""Bytes of an answer as JSON, however many ranks there are: half of what clients warn about."""
ROOM: Final = 512
"""Bytes of `LIMIT` that are kept for `next`."""
MAX_TEXT: Final = 16_384
"""Characters of a text that are looked at; no step of `STEPS` shows as many."""
STEPS: Final = (
    *((items, 4000) for items in (256, 128, 64)),
    *((items, 1000) for items in (64, 48, 32, 24)),
    *((items, 400) for items in (24, 16, 12, 8)),
    *((items, 120) for items in (12, 8, 6, 4, 3, 2, 1)),
    (1, 40),
)
"""Entries of a list and characters of a text, from most to least; the first that fits is taken."""


class Unable(DapMuxError):
    """A tool cannot do what was asked. `hint`: what helps; `options`: what may be given instead."""

    def __init__(self, code: str, hint: str, options: Iterable[str] = ()) -> None:
        super().__init__(hint)
        self.code = code
        self.options = list(options)


CODES: Final[tuple[tuple[type[Exception], str], ...]] = (
    (NothingToConnect, "no-session"),
    (UsageError, "bad-argument"),
    (Refused, "refused"),
    (Exception, "failed"),
)


def failure(error: Exception, options: Iterable[str] = ()) -> Body:
    """Return `{code, hint, options}` for an error."""
    if isinstance(error, Unable):
        return {"code": error.code, "hint": str(error), "options": error.options}
    code = next(code for kind, code in CODES if isinstance(error, kind))
    return {"code": code, "hint": str(error) or type(error).__name__, "options": list(options)}


def fitted(body: Body, more: str = "") -> Body:
    """Return an answer of at most `LIMIT` bytes; `next` says what was left out, and `more` how.

    Texts are redacted and escaped on the way: no character of a rank's steers a terminal.
    """
    whole = _map(body, "", cache(_harmless))
    cut: Body = {}
    left_out: dict[str, tuple[int, int]] = {}
    for items, characters in STEPS:
        left_out = {}
        cut = _cut(whole, "", items, characters, left_out)
        if _size(cut) <= LIMIT - ROOM:
            break
    if left_out:
        parts = (f"{shown} of {count} in `{name}`" for name, (shown, count) in left_out.items())
        text = f"shown: {', '.join(parts)}. {more}".strip()
        cut["next"] = "; ".join(filter(None, (cut.get("next", ""), text)))[: ROOM // 2]
    return cut


def text_of(body: Body) -> str:
    """Return the answer as JSON, without spaces that mean nothing."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def _size(body: Body) -> int:
    return len(text_of(body).encode("utf-8", "replace"))


def _harmless(text: str, name: str) -> str:
    return one_line(redacted(text[:MAX_TEXT], name)) + _ending(len(text) - MAX_TEXT)


def _ending(more: int) -> str:
    return f"... ({more} more characters)" if more > 0 else ""


def _map(value: Any, name: str, change: Callable[[str, str], str], key: str = "") -> Any:
    """Return a copy of an answer, with every text of it changed.

    `name`: of the variable or the expression that a `value` below is of, which `change` gets.
    """
    if isinstance(value, str):
        return change(value, name if key == "value" else "")
    if isinstance(value, dict):
        name = str(value.get("name") or value.get("expression") or name)
        return {str(key): _map(each, name, change, str(key)) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_map(each, name, change, key) for each in value]
    return value


def _cut(
    value: Any, name: str, items: int, characters: int, left_out: dict[str, tuple[int, int]]
) -> Any:
    """Return a copy with lists and texts cut; `left_out`: shown and whole number, by name."""
    if isinstance(value, str) and len(value) > characters:
        left_out[name] = characters, len(value)
        return value[:characters] + _ending(len(value) - characters)
    if isinstance(value, dict):
        return {key: _cut(each, key, items, characters, left_out) for key, each in value.items()}
    if isinstance(value, list):
        if len(value) > items:
            left_out[name] = items, len(value)
        return [_cut(each, name, items, characters, left_out) for each in value[:items]]
    return value
