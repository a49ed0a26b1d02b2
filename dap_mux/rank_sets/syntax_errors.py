"""The parser's errors for an unexpected token, with a hint what to write instead."""

from __future__ import annotations

from dap_mux.rank_sets.errors import RankSetError
from dap_mux.rank_sets.tokens import Token
from dap_mux.rank_sets.world import STATES
from dap_mux.suggestions import did_you_mean

_KEYWORDS = ("all", *STATES, "ranks(...)")

_OPERATOR_HINTS = {
    "and": "for the ranks in both write &",
    "or": "for the ranks in either write |",
    "not": "for all other ranks write ~",
}

_TRAILING_HINTS = {
    ",": "a comma joins numbers, as in 0-3,7; between sets write |",
    ":": "slices go inside ranks(...), as in ranks(0:4)",
    ")": "no parenthesis is open here",
    "number": "is a comma or an operator missing before it?",
    "run": "is a comma or an operator missing before it?",
}


def unknown(token: Token, after: Token) -> RankSetError:
    """A bare name that is neither `all`, a state nor `ranks`."""
    hint = _OPERATOR_HINTS.get(token.text)
    if hint is None and after.kind == "=":
        hint = f"dimensions go inside ranks(...), as in ranks({token.text}=0)"
    hint = hint or did_you_mean(token.text, _KEYWORDS)
    return RankSetError(f"unknown word '{token.text}': {hint}", token.place)


def trailing(token: Token) -> RankSetError:
    """After a set that could have ended."""
    hint = _OPERATOR_HINTS.get(token.text) or _TRAILING_HINTS.get(token.kind)
    message = hint or "expected | & - or the end here"
    return RankSetError(f"unexpected '{token.text}': {message}", token.place)


def trailing_index(token: Token) -> RankSetError:
    """After a piece inside ranks(...)."""
    return RankSetError(f"unexpected '{token.text}': expected , or ) here", token.place)


def no_set(token: Token) -> RankSetError:
    """Where a set was due."""
    found = f", not '{token.text}'" if token.text else ""
    message = f"expected a rank set{found}: for example 0-3, ranks(0:4), stopped or all"
    return RankSetError(message, token.place)


def no_rank(token: Token, after: Token) -> RankSetError:
    """Where a rank number was due."""
    if after.kind == "=":
        hint = f"numbers and dimensions do not mix; write ranks(...) & ranks({token.text}=...)"
        return RankSetError(f"unexpected '{token.text}': {hint}", token.place)
    found = f", not '{token.text}'" if token.text else ""
    hint = ": between sets write |" if token.kind in ("name", "at") else ""
    return RankSetError(f"expected a rank number{found}{hint}", token.place)


def no_dim(token: Token) -> RankSetError:
    """Where a dimension was due."""
    message = "expected a dimension, as in dp=0"
    if token.kind in ("number", "run", ":"):
        message = f"expected a dimension, not '{token.text}': several places of one are dp=(1,3)"
    return RankSetError(message, token.place)
