"""The one place where answers are bounded, and where texts of ranks are made harmless."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from dap_mux.pure.errors import DapMuxError, NothingToConnect, Refused, UsageError
from dap_mux.pure.printable import one_line
from dap_mux.rank.redaction import map_texts, redacted

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


def fitted(body: Body, more: str = "", *, show_secrets: bool = False) -> Body:
    """Return an answer of at most `LIMIT` bytes; `next` says what was left out, and `more` how.

    Texts are redacted and escaped on the way: no character of a rank's steers a terminal.
    """
    # Rules for secrets take 0.2 ms a text: of many ranks' values most are left out before that.
    # No text is shortened there, lest half a secret be taken for none.
    at, _, _ = _first_fit(body, 0)
    few, left_out = _cut_to(body, STEPS[at][0], MAX_TEXT)
    few = map_texts(few, cache(_unredacted if show_secrets else _harmless))
    _, cut, again = _first_fit(few, at)
    for name, (shown, count) in again.items():
        left_out[name] = shown, max(count, left_out.get(name, (0, 0))[1])
    if left_out:
        parts = (f"{shown} of {count} in `{name}`" for name, (shown, count) in left_out.items())
        text = f"shown: {', '.join(parts)}. {more}".strip()
        cut["next"] = "; ".join(filter(None, (cut.get("next", ""), text)))[: ROOM // 2]
    return cut


LeftOut = dict[str, tuple[int, int]]
"""How many entries or characters are shown, of how many, by the key that has them."""


def _first_fit(body: Body, start: int) -> tuple[int, Body, LeftOut]:
    """Return the first step from `start` on whose answer fits, the last one if none does."""
    for at in range(start, len(STEPS) - 1):
        cut, left_out = _cut_to(body, *STEPS[at])
        if len(text_of(cut).encode("utf-8", "replace")) <= LIMIT - ROOM:
            return at, cut, left_out
    return len(STEPS) - 1, *_cut_to(body, *STEPS[-1])


def _cut_to(body: Body, items: int, characters: int) -> tuple[Body, LeftOut]:
    left_out: LeftOut = {}
    cut: Body = _cut(body, "", items, characters, left_out)
    return cut, left_out


def text_of(body: Body) -> str:
    """Return the answer as JSON, without spaces that mean nothing."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def _harmless(text: str, name: str) -> str:
    return one_line(redacted(text, name))


def _unredacted(text: str, _: str) -> str:
    return one_line(text)


def part_without_secrets(text: str, start: int, end: int) -> str:
    """Return `text[start:end]`; of a secret that begins or ends beyond it no part is shown."""
    hidden = redacted(text)
    if hidden == text:
        return text[start:end]
    before = _alike(text, hidden)
    after = len(text) - _alike(text[before:][::-1], hidden[before:][::-1])
    middle = hidden[before : len(hidden) - len(text) + after]
    within = middle if before < end and start < after else ""
    return text[start : min(before, end)] + within + text[max(after, start) : end]


def _alike(one: str, other: str) -> int:
    """Return how many characters at the start are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _cut(value: Any, name: str, items: int, characters: int, left_out: LeftOut) -> Any:
    """Return a copy with lists and texts cut; `left_out`: shown and whole number, by name."""
    if isinstance(value, str) and len(value) > characters:
        left_out[name] = characters, len(value)
        return f"{value[:characters]}... ({len(value) - characters} more characters)"
    if isinstance(value, dict):
        return {key: _cut(each, key, items, characters, left_out) for key, each in value.items()}
    if isinstance(value, list | tuple):
        if len(value) > items:
            left_out[name] = items, len(value)
        return [_cut(each, name, items, characters, left_out) for each in value[:items]]
    return value
