"""`array`: a tensor or array of one rank, of ranks side by side, or as it is spread over ranks."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from dap_mux.engine.messages import to_clients
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.selection import focused
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.threads import named
from dap_mux.engine.values.fan_out import FanOutEvaluator
from dap_mux.engine.values.meshes import Meshes
from dap_mux.engine.values.replies import Answers
from dap_mux.pure.errors import PeerFault, UsageError
from dap_mux.pure.insight.compare import by_message
from dap_mux.pure.protocol.messages import Body
from dap_mux.pure.protocol.rank_messages import read_text
from dap_mux.pure.protocol.types import ArrayArguments
from dap_mux.pure.protocol.validation import typed
from dap_mux.pure.rank_sets import RankId
from dap_mux.pure.remote import is_expression

MAX_CELLS: Final = 256  # in each direction: `dap_mux.rank.injected.array_view`
MAX_TOTAL: Final = MAX_CELLS**2  # of all ranks side by side, one row of cells each
FEWEST: Final = 16  # columns for each of very many ranks
RUNS: Final = "it is running: pause it to see its arrays"
# Positions of the lambda's own parameters: the program's names in the expression are not hidden.
VALUE: Final = "own['view'](own['sent'], value, asked)"

Size = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Sizes = Annotated[list[Size], Meta(max_length=64)]
Text = Annotated[str, Meta(max_length=256)]
Cells = Annotated[str, Meta(max_length=MAX_TOTAL * 16 // 3 + 4, pattern="^[A-Za-z0-9+/]*=*$")]
Extent = Annotated[int, Meta(ge=1, le=MAX_CELLS)]


class Statistics(Struct):
    """Of a part's elements; `min`, `max` and `mean` are of the numbers alone."""

    min: float | None
    max: float | None
    mean: float | None
    nan: Size
    inf: Size
    count: Size


class Part(Struct):
    """The cells of what one rank has, and where it lies in the whole, in elements."""

    row: Size
    column: Size
    height: Size
    width: Size
    grid: tuple[Extent, Extent]
    mean: Cells
    max: Cells
    nan: Cells
    statistics: Statistics
    histogram: Annotated[list[Size], Meta(max_length=64)]
    ends: Annotated[list[float], Meta(max_length=2)]
    complete: bool

    def __post_init__(self) -> None:
        """Raise `ValueError` for cells that are more or fewer than the grid has."""
        chars = -(-4 * self.grid[0] * self.grid[1] // 3) * 4
        if len(self.mean) != chars or {len(self.max), len(self.nan)} - {0, chars}:
            raise ValueError("the grid has another number of cells")


class ArrayTold(Struct):
    """A rank's answer; `shape` is that of the whole, `local` that of what the rank has of it."""

    problem: Text = ""
    name: Text = ""
    dtype: Text = ""
    device: Text = ""
    placements: Text = ""
    shape: Sizes = []
    local: Sizes = []
    offset: Sizes = []
    part: Part | None = None

    @property
    def summary(self) -> str:
        """Return type, shape and device, as the ranks are told apart by them."""
        return " ".join(each for each in (self.name, str(self.shape), self.dtype) if each)


# One rank is asked once. Several are asked for their shapes first, since of a tensor that is the
# same in many ranks one copy is enough: 64 ranks would send 64 MB for one picture.
class Arrays(Struct, eq=False):
    """The engine's part that answers `array`."""

    _core: SessionState
    _fan_out: FanOutEvaluator
    _meshes: Meshes

    def array(self, request: ClientRequest) -> None:
        """`array`: the cells of a tensor or array, reduced in the ranks that have it."""
        arguments = typed(request.arguments, ArrayArguments)
        if not is_expression(arguments.expression.replace("$", "_")):
            raise UsageError("array: write one expression whose value is a tensor or an array")

        def look(ranks: list[Rank]) -> None:
            _Look(self._core, self._fan_out, request, ranks, arguments).start()

        if arguments.ranks:
            self._meshes.choose(request, arguments.ranks, look)
            return
        stopped = (rank for rank in self._core.sorted_mains() if rank.stop)
        rank = focused(self._core, request.client) or next(stopped, None)
        if rank is None:
            raise UsageError("no rank is stopped: its arrays cannot be seen")
        look([rank])


class _Look(Struct, eq=False):
    """One `array`: the ranks' answers so far."""

    _core: SessionState
    _fan_out: FanOutEvaluator
    _request: ClientRequest
    _ranks: list[Rank]
    _arguments: ArrayArguments
    _told: dict[RankId, ArrayTold] = {}
    _errors: dict[RankId, str] = {}
    _missing: set[RankId] = set()

    @property
    def _lines(self) -> bool:
        """Whether each rank is a row."""
        return self._arguments.rows == "$rank"

    def start(self) -> None:
        """Ask the ranks; several for their shapes at first, unless each is to be a row."""
        self._ask(self._ranks, cells=self._lines or len(self._ranks) == 1)

    def _ask(self, ranks: list[Rank], *, cells: bool) -> None:
        arguments = self._arguments
        each = max(FEWEST, min(MAX_CELLS, MAX_TOTAL // max(1, len(ranks))))
        asked = {
            "rows": None if self._lines else arguments.rows,
            "line": self._lines,
            "columns": arguments.columns,
            "at": arguments.at,
            "width": each if self._lines else MAX_CELLS,
            "cells": cells,
        }
        code = self._core.injected.bundle("array_view", "tensor_summary").bring(VALUE)
        text = f"(lambda value, asked: {code})(({arguments.expression}\n), {asked!r})"
        self._fan_out.evaluate(
            ranks,
            text,
            lambda answers: self._answered(answers, cells=cells),
            arguments.timeout,
            raw=True,
            stopped_only=RUNS,
            depth=arguments.frame,
        )

    def _answered(self, answers: Answers, *, cells: bool) -> None:
        self._errors |= answers.errors
        self._missing |= answers.missing
        for id, answer in answers.values.items():
            told = _read(answer.value, cells=cells)
            if told.problem:
                self._told.pop(id, None)
                self._errors[id] = told.problem
            else:
                self._told[id] = told
        chosen = [] if cells else self._chosen()
        if chosen:
            self._ask(chosen, cells=True)
        else:
            to_clients.respond(self._core, self._request, self._body())

    def _chosen(self) -> list[Rank]:
        """Return the ranks whose cells are wanted: one for each place of the whole."""
        focus = focused(self._core, self._request.client)
        ranks = sorted(self._ranks, key=lambda rank: rank is not focus)
        ranks = [rank for rank in ranks if rank.rank_id in self._told]
        if not ranks:
            return []
        first = self._told[ranks[0].rank_id]
        if not first.placements:
            return ranks[:1]
        places: dict[tuple[int, ...], Rank] = {}
        for rank in ranks:
            told = self._told[rank.rank_id]
            if told.shape == first.shape and self._has(told):
                places.setdefault(tuple(told.offset), rank)
        return [*places.values()][:MAX_TOTAL]

    def _has(self, told: ArrayTold) -> bool:
        """Whether a rank has anything of what is shown: its part may be empty, or elsewhere."""
        at, axes = self._arguments.at, self._axes(told.shape)
        for axis, (begin, size) in enumerate(zip(told.offset, told.local, strict=False)):
            wanted = begin if axis in axes else at[axis] if axis < len(at) else 0
            if not size or not (wanted < 0 or begin <= wanted < begin + size):
                return False
        return True

    def _axes(self, shape: list[int]) -> tuple[int | str | None, int]:
        """Return rows and columns as they were asked for; the last two dimensions otherwise."""
        last = max(0, len(shape) - 1)
        rows, columns = self._arguments.rows, self._arguments.columns
        columns = last if columns is None else columns
        if rows is None and last > 0:
            rows = last - 1 if columns == last else last
        return rows, columns

    def _body(self) -> Body:
        known = {id: told for id, told in self._told.items() if told.part}
        first = next(iter(known.values()), ArrayTold())
        # The part at a place is of the rank in focus, if it has that: its number orders rows alone.
        at = {id: [] if self._lines else told.offset for id, told in known.items()}
        ids = sorted(known, key=lambda rank: (at[rank], rank))
        parts = [self._part(id, known[id], place) for place, id in enumerate(ids)]
        rows, columns = self._axes(first.shape)
        shape, label = first.shape or [1], partial(named, self._core)
        high = (
            len(parts)
            if self._lines
            else shape[rows]
            if isinstance(rows, int) and rows < len(shape)
            else 1
        )
        return {
            **{name: getattr(first, name) for name in ("name", "dtype", "device", "placements")},
            "shape": first.shape,
            "rows": rows,
            "columns": columns,
            "extent": [high, shape[columns] if columns < len(shape) else 1],
            "parts": parts,
            "shapes": by_message({id: one.summary for id, one in self._told.items()}, label),
            "errors": by_message(self._errors, label),
            "missing": named(self._core, self._missing),
        }

    def _part(self, id: RankId, told: ArrayTold, place: int) -> Body:
        same = [
            other
            for other, one in self._told.items()
            if told.placements and one.offset == told.offset and one.shape == told.shape
        ]
        part: Body = msgspec.to_builtins(told.part)
        moved = {"row": place} if self._lines else {}
        return {"ranks": named(self._core, same or [id]), **part, **moved}


def _read(text: str, *, cells: bool) -> ArrayTold:
    """Return what a rank says; what is malformed is its problem."""
    try:
        told = read_text(text, ArrayTold)
    except PeerFault as error:
        return ArrayTold(problem=f"malformed answer: {error}"[:MAX_CELLS])
    if cells and not told.problem and told.part is None:
        return ArrayTold(problem="malformed answer: no cells")
    same = len(told.shape) == len(told.offset) == len(told.local)
    return told if same or told.problem else ArrayTold(problem="malformed answer: other dimensions")
