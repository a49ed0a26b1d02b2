"""Text to rank set: a recursive-descent parser, one method for each line of the grammar.

The grammar itself stands in the package's docstring.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import NamedTuple, TypeVar

from dap_mux.pure.printable import did_you_mean
from dap_mux.pure.rank_sets.algebra import (
    All,
    Complement,
    Coordinates,
    Difference,
    Dim,
    Index,
    InState,
    Intersection,
    Named,
    Numbers,
    Run,
    Slice,
    Union,
)
from dap_mux.pure.rank_sets.tokens import Place, RankSetError, Token, singly, tokenize
from dap_mux.pure.rank_sets.world import STATES, RankSet

_MAX_NESTING = 16
"""How deep parentheses and `~` may go; bounds the recursion."""

_MAX_SETS = 512
"""How many sets operators may join: each is evaluated, and a list of numbers is one."""

_NUMBERS = ("number", "run", "list")

_Item = TypeVar("_Item")


def parse(text: str) -> RankSet:
    """Read a whole text as a rank set. Raises RankSetError at the first wrong token."""
    return parse_within(text, 0, len(text))


def parse_within(text: str, start: int, end: int) -> RankSet:
    """Read `text[start:end]`; errors have columns in the whole text."""
    return _Parser(tokenize(text, start, end)).whole()


class _Located(NamedTuple):
    """Indices, and the columns where they begin, or the spaces in front of them."""

    indices: tuple[Index, ...]
    columns: tuple[int, ...]


# The grammar, loosest binding first (the order of Python's own operators):
#
#     set        = meet (("|" | ";") meet)*             either; ";" is what `fold` prints
#     meet       = difference ("&" difference)*         both
#     difference = term ("-" term)*                     the first without the rest
#     term       = "~" term | "(" set ")" | atom        "~": every other rank of the session
#     atom       = "all" | STATE | "@" NAME | list | "ranks" "(" [indices | dims] ")"
#                | NAME ":" (list | "all" | STATE)      in that group only
#                | NAME "." "ranks" "(" [indices | dims] ")"
#     list       = piece ("," piece)*                   0-7,12
#     piece      = INT | INT "-" INT                    0-3 has both ends, and no spaces
#     indices    = index ("," index)*
#     index      = piece | [INT] ":" [INT] [":" [INT]]  half-open, as in Python
#     dims       = dim ("," dim)*                       any subset of the mesh's dimensions
#     dim        = NAME "=" (index | "(" index ("," index)* ")")
class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0
        self._sets = 0

    def whole(self) -> RankSet:
        result = self._set()
        if self._peek().kind != "end":
            raise _trailing(self._take())
        return result

    # Operators, loosest first.

    def _set(self) -> RankSet:
        return self._chain(("|", ";"), self._meet, Union)

    def _meet(self) -> RankSet:
        return self._chain(("&",), self._difference, Intersection)

    def _difference(self) -> RankSet:
        return self._chain(("-",), self._term, Difference)

    def _chain(
        self,
        operators: tuple[str, ...],
        operand: Callable[[], RankSet],
        build: Callable[[tuple[RankSet, ...]], RankSet],
    ) -> RankSet:
        """One flat node for `a | b | c`, so that long chains nest no deeper than short ones."""
        parts = self._separated(operators, operand)
        return parts[0] if len(parts) == 1 else build(parts)

    def _term(self) -> RankSet:
        token = self._peek()
        if self._accept("~"):
            return Complement(self._deeper(token, self._term))
        if self._accept("("):
            inner = self._deeper(token, self._set)
            self._close(token, _trailing)
            return inner
        return self._atom()

    def _deeper(self, token: Token, operand: Callable[[], RankSet]) -> RankSet:
        self._depth += 1
        if self._depth > _MAX_NESTING:
            raise RankSetError(f"more than {_MAX_NESTING} levels of nesting", token.place)
        result = operand()
        self._depth -= 1
        return result

    # Atoms.

    def _atom(self) -> RankSet:
        token = self._peek()
        self._sets += 1
        if self._sets > _MAX_SETS:
            message = f"more than {_MAX_SETS} sets in one: commas join numbers, as in 0-3,7"
            raise RankSetError(message, token.place)
        if token.kind in _NUMBERS:
            return self._list(None)
        if token.kind == "at":
            return Named(self._take().text, token.place)
        if token.kind == "name":
            return self._name(self._take())
        raise _no_set(token)

    def _name(self, name: Token) -> RankSet:
        if self._accept(":"):
            return self._of_group(name)
        if self._accept("."):
            ranks = self._take()
            if ranks.text != "ranks":
                message = f"after a group's dot comes ranks(...), as in {name.text}.ranks(0:4)"
                raise RankSetError(message, ranks.place)
            return self._ranks(name.text, name)
        if name.text == "ranks":
            return self._ranks(None, name)
        return self._state(None, name)

    def _of_group(self, group: Token) -> RankSet:
        token = self._peek()
        if token.kind in _NUMBERS:
            return self._list(group)
        if token.kind == "name" and token.text != "ranks":
            return self._state(group.text, self._take())
        message = f"after a group's colon come ranks, as in {group.text}:0-3"
        raise RankSetError(message, self._one().place)

    def _state(self, group: str | None, name: Token) -> RankSet:
        if name.text == "all":
            return All(group, name.place)
        if name.text in STATES:
            return InState(group, name.text, name.place)
        raise _unknown(name, self._peek())

    def _list(self, group: Token | None) -> RankSet:
        place = (group or self._peek()).place
        pieces = self._located(self._piece)
        return Numbers(group.text if group else None, *pieces, place)

    # Inside ranks(...).

    def _ranks(self, group: str | None, name: Token) -> RankSet:
        opening = self._peek()
        if not self._accept("("):
            raise RankSetError("ranks needs parentheses, as in ranks(0:4)", opening.place)
        result = self._selection(group, name.place)
        self._close(opening, _trailing_index)
        return result

    def _selection(self, group: str | None, place: Place) -> RankSet:
        kind = self._peek().kind
        if kind == ")":
            return Numbers(group, (), (), place)
        if kind == "name":
            return Coordinates(group, self._dims(), place)
        return Numbers(group, *self._located(self._index), place)

    def _dims(self) -> tuple[Dim, ...]:
        dims = self._separated((",",), self._dim)
        seen: set[str] = set()
        for dim in dims:
            if dim.name in seen:
                message = f"the dimension {dim.name} is given twice: {dim.name}=(1,3) means either"
                raise RankSetError(message, dim.place)
            seen.add(dim.name)
        return dims

    def _dim(self) -> Dim:
        name = self._take()
        if name.kind != "name":
            raise _no_dim(name)
        if not self._accept("="):
            message = f"expected = and coordinates after '{name.text}', as in {name.text}=0"
            raise RankSetError(message, self._one().place)
        opening = self._one()
        if not self._accept("("):
            return Dim(name.text, (self._index(),), (opening.column,), name.place)
        indices = self._located(self._index)
        self._close(opening, _trailing_index)
        return Dim(name.text, *indices, name.place)

    def _located(self, one: Callable[[], Index]) -> _Located:
        """Several indices; `one` reads what is no list of numbers."""
        parts = self._separated((",",), lambda: self._list_or(one))
        if len(parts) == 1:
            return parts[0]
        indices = tuple(index for part in parts for index in part.indices)
        return _Located(indices, tuple(column for part in parts for column in part.columns))

    def _list_or(self, one: Callable[[], Index]) -> _Located:
        token = self._peek()
        if token.kind != "list":
            return _Located((one(),), (token.column,))
        self._next += 1
        pieces = token.text.split(",")
        widths = (len(piece) + 1 for piece in pieces)
        columns = tuple(accumulate(widths, initial=token.column))[:-1]
        if "-" not in token.text:
            return _Located(tuple(map(int, pieces)), columns)
        each = zip(pieces, columns, strict=True)
        indices = (_piece(piece, Place(token.source, column)) for piece, column in each)
        return _Located(tuple(indices), columns)

    def _index(self) -> Index:
        kind = self._one().kind
        sliced = kind == ":" or (kind == "number" and self._tokens[self._next + 1].kind == ":")
        return self._slice() if sliced else self._piece()

    def _slice(self) -> Index:
        start = self._number()
        self._take()  # the colon that told a slice from a number
        stop = self._number()
        step = None
        if self._accept(":"):
            place = self._one().place
            step = self._number()
            if step == 0:
                raise RankSetError("the step of a slice must be 1 or more", place)
        return Slice(start, stop, step)

    def _number(self) -> int | None:
        """A slice's part, which may be left out."""
        return int(self._take().text) if self._one().kind == "number" else None

    def _piece(self) -> int | Run:
        token = self._take()
        if token.kind not in ("number", "run"):
            raise _no_rank(token, self._peek())
        return _piece(token.text, token.place)

    # Tokens.

    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _one(self) -> Token:
        """The next token, where a list is not wanted: its first number."""
        if self._peek().kind == "list":
            self._tokens[self._next : self._next + 1] = singly(self._peek())
        return self._peek()

    def _take(self) -> Token:
        token = self._one()
        self._next += token.kind != "end"
        return token

    def _accept(self, *kinds: str) -> bool:
        found = self._peek().kind in kinds
        self._next += found
        return found

    def _separated(
        self, separators: tuple[str, ...], item: Callable[[], _Item]
    ) -> tuple[_Item, ...]:
        items = [item()]
        while self._accept(*separators):
            items.append(item())
        return tuple(items)

    def _close(self, opening: Token, complain: Callable[[Token], RankSetError]) -> None:
        if self._accept(")"):
            return
        if self._peek().kind == "end":
            raise RankSetError("this parenthesis is never closed", opening.place)
        raise complain(self._one())


def _piece(text: str, place: Place) -> int | Run:
    """A number, or a range with both ends; spaces may be around it."""
    if "-" not in text:
        return int(text)
    first, last = map(int, text.split("-"))
    if first > last:
        text, column = text.strip(), place.column + len(text) - len(text.lstrip())
        message = f"{text} runs backwards: did you mean {last}-{first}?"
        raise RankSetError(message, Place(place.text, column, len(text)))
    return Run(first, last)


# What is said of an unexpected token, with a hint what to write instead

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


def _unknown(token: Token, after: Token) -> RankSetError:
    """A bare name that is neither `all`, a state nor `ranks`."""
    hint = _OPERATOR_HINTS.get(token.text)
    if hint is None and after.kind == "=":
        hint = f"dimensions go inside ranks(...), as in ranks({token.text}=0)"
    hint = hint or did_you_mean(token.text, _KEYWORDS)
    return RankSetError(f"unknown word '{token.text}': {hint}", token.place)


def _trailing(token: Token) -> RankSetError:
    """After a set that could have ended."""
    hint = _OPERATOR_HINTS.get(token.text) or _TRAILING_HINTS.get(token.kind)
    message = hint or "expected | & - or the end here"
    return RankSetError(f"unexpected '{token.text}': {message}", token.place)


def _trailing_index(token: Token) -> RankSetError:
    """After a piece inside ranks(...)."""
    return RankSetError(f"unexpected '{token.text}': expected , or ) here", token.place)


def _no_set(token: Token) -> RankSetError:
    """Where a set was due."""
    found = f", not '{token.text}'" if token.text else ""
    message = f"expected a rank set{found}: for example 0-3, ranks(0:4), stopped or all"
    return RankSetError(message, token.place)


def _no_rank(token: Token, after: Token) -> RankSetError:
    """Where a rank number was due."""
    if after.kind == "=":
        hint = f"numbers and dimensions do not mix; write ranks(...) & ranks({token.text}=...)"
        return RankSetError(f"unexpected '{token.text}': {hint}", token.place)
    found = f", not '{token.text}'" if token.text else ""
    hint = ": between sets write |" if token.kind in ("name", "at") else ""
    return RankSetError(f"expected a rank number{found}{hint}", token.place)


def _no_dim(token: Token) -> RankSetError:
    """Where a dimension was due."""
    message = "expected a dimension, as in dp=0"
    if token.kind in ("number", "run", ":"):
        message = f"expected a dimension, not '{token.text}': several places of one are dp=(1,3)"
    return RankSetError(message, token.place)
