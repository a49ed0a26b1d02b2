"""The variables of a frame, marked where other ranks at the same place have other values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

from msgspec import Meta, Struct, field

from dap_mux.engine.messages import to_clients
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.handles import Recent
from dap_mux.engine.state.rank import Connection, Rank, Stop
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.threads import named
from dap_mux.engine.values.fan_out import FanOutEvaluator
from dap_mux.engine.values.inspect import Inspector, ShownFrame, frame_of
from dap_mux.engine.values.replies import Answers
from dap_mux.pure.errors import PeerFault
from dap_mux.pure.insight.compare import (
    Comparison,
    Group,
    compare,
    describe,
    number_of,
    spread,
)
from dap_mux.pure.protocol.arguments import FrameArguments, ReferenceArguments
from dap_mux.pure.protocol.messages import Body, plain, raw
from dap_mux.pure.protocol.rank_messages import read_text
from dap_mux.pure.protocol.validation import typed
from dap_mux.pure.rank_sets import RankId
from dap_mux.pure.rank_sets.world import DebuggeeId
from dap_mux.pure.rank_values import MORE, in_short
from dap_mux.pure.remote import PYTHON

TIMEOUT_S: Final = 0.2
MAX_FRAMES: Final = 64  # whose variables somebody has looked at last
MAX_NAMES: Final = 64  # of one frame
# Values of all ranks: to compare one name in 512 ranks takes 8 ms, in which nothing else is done.
MAX_VALUES: Final = 4096
MIN_NAMES: Final = 8
MAX_SET_CHARS: Final = 24  # longer sets are counted
MAX_NOTED: Final = 2  # values of other ranks in one note
# Types as debugpy names them; the rank looks at the type itself. Of others nobody is asked.
TYPES: Final = frozenset(
    """int float bool str NoneType Tensor Parameter DTensor ndarray float16 float32
    float64 int8 int16 int32 int64 uint8 bool_ bfloat16""".split()
)
# What `marked` puts behind a value; an editor offers it for editing with the value.
_MARK: Final = re.compile(r"  (?:[▁-█×]+(?: \{[^{}]*\})?|≠ .*|= \{[^{}]*\})$")

ShortText: TypeAlias = Annotated[str, Meta(max_length=512)]
ShortValue: TypeAlias = tuple[ShortText, ShortText | None]
"""The text of a value, and of an array its norm."""
ByName: TypeAlias = dict[str, dict[RankId, ShortValue]]


class Mark(NamedTuple):
    """How a value differs: `line`, a bar for each rank or some; `ranks`: the outliers."""

    value: str  # this rank's, in short
    line: str
    ranks: str
    note: str  # `≠ {300} 340268`

    @property
    def text(self) -> str:
        """Return what stands behind the value."""
        outliers = f" {{{self.ranks}}}" if self.ranks else ""
        return f"  {self.line}{outliers}" if self.line else f"  {self.note}"


class _Question(Struct, eq=False):
    """One question to the ranks at a place; `waiting`: what to do with their values."""

    waiting: list[Callable[[ByName], None]]
    values: ByName | None = None


# One `evaluate` to each rank that stands at the same place, when a client asks for the variables of
# a frame for the first time in a stop. A step is never kept waiting for it: the answer goes out
# without it after 200 ms, a rank that still owes the last one is not asked again, and while one
# question is under way there is no other. The rank looks at types of its own libraries only.
class AcrossRanks(Struct, eq=False):
    """The engine's part that answers `scopes` and, for local variables, `variables`."""

    _core: SessionState
    _inspector: Inspector
    _fan_out: FanOutEvaluator
    _frames: Recent[int, ShownFrame] = field(default_factory=lambda: Recent(MAX_FRAMES))
    _casts: Recent[int, _Question] = field(default_factory=lambda: Recent(MAX_FRAMES))
    _has_code: dict[DebuggeeId, Connection] = {}
    _owes: dict[DebuggeeId, int] = {}

    def scopes(self, request: ClientRequest) -> None:
        """`scopes`: notes which of the references is that of the local variables."""
        shown = frame_of(self._core, typed(request.arguments, FrameArguments).frameId)
        if shown is None or shown.rank.main or self._core.single or self._wanted(request) == "off":
            self._inspector.to_owner(request)
            return

        def answered(body: Body, problem: str) -> None:
            for scope in _rows(body, "scopes"):
                reference = scope.get("variablesReference")
                if scope.get("presentationHint") == "locals" and isinstance(reference, int):
                    self._frames[reference] = shown
            self._pass(request, body, problem)

        self._inspector.to_owner(request.inner(answered))

    def variables(self, request: ClientRequest) -> None:
        """`variables`: of a frame's own variables with marks where ranks differ."""
        reference = typed(request.arguments, ReferenceArguments).variablesReference
        shown = self._frames.get(reference)
        wanted = self._wanted(request)
        if shown is None or shown.rank.stop is not shown.stop or wanted == "off":
            self._inspector.to_owner(request)
            return

        def answered(body: Body, problem: str) -> None:
            rows = _rows(body, "variables")

            def told(values: ByName) -> None:
                self._mark(shown.rank.rank_id, rows, values, every=wanted == "all")
                to_clients.respond(self._core, request, body)

            if problem:
                self._pass(request, body, problem)
            else:
                self._values(reference, shown, rows, told)

        self._inspector.to_owner(request.inner(answered))

    def plain_value(self, request: ClientRequest) -> None:
        """Take our mark off a value that somebody has edited, and sets now."""
        arguments = plain(request.arguments)
        if isinstance(value := arguments.get("value"), str):
            request.arguments = raw({**arguments, "value": _MARK.sub("", value)})

    def _wanted(self, request: ClientRequest) -> str:
        """Return the client's own choice, or the session's."""
        own = request.client.arguments.get("valuesAcrossRanks")
        return own if isinstance(own, str) else self._core.settings.values_across_ranks

    def _pass(self, request: ClientRequest, body: Body, problem: str) -> None:
        if problem:
            to_clients.refuse(self._core, request, problem, to_clients.RANK_ERROR)
        else:
            to_clients.respond(self._core, request, body)

    # The question

    def _values(
        self,
        reference: int,
        shown: ShownFrame,
        rows: Iterable[Body],
        then: Callable[[ByName], None],
    ) -> None:
        """Call `then` with the ranks' values: at once where they are known or cannot be had."""
        cast = self._casts.get(reference)
        if cast is not None and cast.values is None:
            cast.waiting.append(then)
            return
        busy = any(one.values is None for one in self._casts.values())
        ranks = self._beside(shown) if cast is None and not busy else []
        simple = sorted(filter(_is_simple, rows), key=_is_exact)
        most = max(MIN_NAMES, MAX_VALUES // max(1, len(ranks)))
        names = [row["name"] for row in simple[: min(most, MAX_NAMES)]]
        if len(ranks) < 2 or not names:
            then((cast.values or {}) if cast else {})
            return
        cast = self._casts[reference] = _Question([then])
        scope = f"{PYTHON}.globals()"  # debugpy evaluates in globals that have the frame's names
        value = f"own['local_values'](own['sent'], {names!r}, {scope})"
        bundle = self._core.injected.bundle("local_values", "tensor_summary")
        texts = {True: bundle.ask(value), False: bundle.bring(value)}
        sent = partial(self._sent, reference, cast, ranks)
        self._fan_out.evaluate(
            ranks,
            lambda rank: texts[self._has_code.get(rank.id) is rank.connection],
            sent,
            TIMEOUT_S,
            raw=True,
            depth=shown.depth,
        )
        for rank in ranks:
            self._owes[rank.id] = rank.connection.seq

    def _beside(self, shown: ShownFrame) -> list[Rank]:
        """Return the ranks at the frame's place, those left out that still owe an answer."""
        here = [one for one in self._core.sorted_mains() if self._is_at(one, shown.stop)]
        return here if shown.rank in here else []

    def _is_at(self, rank: Rank, stop: Stop) -> bool:
        owes = self._owes.get(rank.id) in rank.connection.pending
        same = rank.stop is stop or (rank.stop is not None and rank.stop.frames == stop.frames)
        return rank.stopped and same and not owes

    def _sent(self, reference: int, cast: _Question, ranks: list[Rank], answers: Answers) -> None:
        """Ranks have answered, or the time is up; then the next request asks once more."""
        if answers.missing:
            self._casts.pop(reference, None)
        values = cast.values = {}
        read = {text: _read(text) for text in {one.value for one in answers.values.values()}}
        for rank in ranks:
            if rank.rank_id in answers.missing:
                continue
            self._owes.pop(rank.id, None)
            self._has_code.pop(rank.id, None)
            answer = answers.values.get(rank.rank_id)
            told = read[answer.value] if answer else None
            if told is not None:
                self._has_code[rank.id] = rank.connection
                for name, one in told.items():
                    values.setdefault(name, {})[rank.rank_id] = one
        for then in cast.waiting:
            self._core.later(partial(then, values))
        cast.waiting = []

    # The marks

    def _mark(self, own: RankId, rows: Iterable[Body], values: ByName, *, every: bool) -> None:
        """Put a mark behind each value that differs; `every`: behind equal ones, too."""
        for row in rows:
            told = values.get(row["name"], {})
            if own not in told or len(told) < 2:
                continue
            mark = self._mark_of(own, told)
            if mark is None:
                row["value"] += f"  = {{{self._set(told)}}}" if every else ""
                continue
            row["value"] = (row["value"] if _is_exact(row) else mark.value) + mark.text
            row["acrossRanks"] = {"line": mark.line, "ranks": mark.ranks, "note": mark.note}

    def _mark_of(self, own: RankId, told: Mapping[RankId, ShortValue]) -> Mark | None:
        if len({*told.values()}) == 1:
            return None
        found, numbers = compared(told)
        line = spread([numbers.get(rank) for rank in sorted(told)]) if numbers else ""
        outliers = self._set(found.outliers) if found.outliers else ""
        wanted = own not in found.outliers and bool(found.outliers)
        groups = [one for one in found.groups if one.outlier is wanted and own not in one.ranks]
        text, norm = told[own]
        few = groups[:MAX_NOTED]
        value, *texts = _rounded([norm or text, *(one.value for one in few)])
        if norm is not None:
            value = f"{text[: text.find(']') + 1]} norm {value}"
        notes = [f"{{{self._set(one.ranks)}}} {each}" for one, each in zip(few, texts, strict=True)]
        note = " ".join(notes) if groups == few else self._range(groups, numbers)
        return Mark(value, line, outliers, f"≠ {note}")

    def _range(self, groups: Sequence[Group], numbers: Mapping[RankId, float]) -> str:
        """Return `{1-3} 0.0469 … 0.0904`, of texts how many there are."""
        ranks = [rank for one in groups for rank in one.ranks]
        known = describe(numbers[rank] for rank in ranks if rank in numbers)
        different = f"{len(groups)} values"
        ends = different if known.min is None else f"{known.min:.6g} … {known.max:.6g}"
        return f"{{{self._set(ranks)}}} {ends}"

    def _set(self, ranks: Iterable[RankId]) -> str:
        ids = sorted(ranks)
        text = named(self._core, ids)
        return text if len(text) <= MAX_SET_CHARS else f"{len(ids)} ranks"


def compared(told: Mapping[RankId, ShortValue]) -> tuple[Comparison, dict[RankId, float]]:
    """Compare values by their numbers: arrays by norms, unless only the rest of them differs."""
    texts = {rank: text for rank, (text, _) in told.items()}
    norms = {rank: norm for rank, (_, norm) in told.items() if norm is not None}
    if len(norms) == len(told) and len({*norms.values()}) > 1:
        texts = norms
    numbers = {rank: one for rank, text in texts.items() if (one := number_of(text)) is not None}
    return compare(texts), numbers if 2 * len(numbers) > len(told) else {}


def _rounded(texts: Sequence[str]) -> list[str]:
    """Return numbers in six digits, and whole where they would look alike."""
    pairs = zip(texts, in_short([*texts, ""]), strict=False)
    return [text if number_of(text) is None else short.replace(MORE, "") for text, short in pairs]


def _is_simple(row: Mapping[str, Any]) -> bool:
    name = row["name"]
    known = row.get("type") in TYPES and isinstance(row.get("value"), str)
    return known and name.isidentifier() and not name.startswith("__")


def _is_exact(row: Mapping[str, Any]) -> bool:
    """Whether it is shown as it is; where there are too many, others come first: losses, norms."""
    return row["type"] in {"int", "bool", "str", "NoneType"}


def _rows(body: Body, key: str) -> list[Body]:
    """Return the objects with names in a list of a response, which is a rank's."""
    rows = body.get(key)
    found = rows if isinstance(rows, list) else []
    return [one for one in found if isinstance(one, dict) and isinstance(one.get("name"), str)]


def _read(text: str) -> dict[str, ShortValue] | None:
    """Return a rank's values; None where it has lost our code, or sends nonsense."""
    try:
        return read_text(text, dict[str, ShortValue])
    except PeerFault:
        return None
