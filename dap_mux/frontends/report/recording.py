"""The stops of a report, through which its ranks go together."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, Protocol

import msgspec

from dap_mux.frontends.report.recorded_rank import ENDED, RecordedRank, Unanswered
from dap_mux.frontends.report.report_file import At, Contents, Report, Stop
from dap_mux.pure.errors import UsageError
from dap_mux.pure.printable import one_line

Body = dict[str, Any]
MAX_RANKS: Final = 65_536
MAX_LINES: Final = 1000
"""Of output; the last are shown."""
MAX_LINE: Final = 4000
CATEGORIES: Final = ("stdout", "stderr")
ELSEWHERE: Final = At("", "running")
OVER: Final = At("", "ended")
THE_END: Final = "`dap-mux list` shows how each rank ended; threads and variables need a stop"
_RANKS: Final = re.compile(r"[0-9]{1,9}(-[0-9]{1,9})?(,[0-9]{1,9}(-[0-9]{1,9})?)*")
_EXIT_CODE: Final = re.compile(r"exit code (-?[0-9]{1,5})")


class Stage(Protocol):
    """The session of a recording, which shows its ranks."""

    def comes(self, rank: int) -> None:
        """The process of this rank is there from now on."""

    def ends(self, rank: int, code: int | None, how: str) -> None:
        """The process of this rank is over from now on."""

    def shown(self, title: str, why: Body, end: str) -> None:
        """Another stop is shown; `why`: what was answered there, {} for nothing."""

    def later(self, call: Callable[[], None]) -> None:
        """Call it once all ranks have heard what they are sent now."""


class Suspect(msgspec.Struct):
    """Of a verdict, as clients read it."""

    ranks: str
    stack: list[Body]
    waitingFor: str


class Why(msgspec.Struct):
    """The response of `why`, as clients read it."""

    verdict: str
    sentence: str
    suspects: list[Suspect]
    evidence: list[str]
    next: str
    waits: list[dict[str, str]] = []


class Recording:
    """The ranks of a report, at one of its stops; the last one is shown first."""

    def __init__(self, contents: Contents, name: str) -> None:
        """Raise UsageError for a report that makes no sense, or has no rank."""
        self.texts = contents.texts
        self._report = report = contents.report
        if not report.ranks:
            raise UsageError(f"{name} has no rank to show: {report.end}")
        try:
            numbers = sorted({*report.ranks})
            if len(numbers) != len(report.ranks) or len(numbers) > MAX_RANKS:
                raise ValueError(f"it has {len(report.ranks)} ranks, or some twice")
            if numbers[0] < 0 or numbers[-1] >= 2**31:
                raise ValueError("a rank is out of range")
            moments = [(stop, _places(stop, numbers)) for stop in contents.stops]
            moments = [one for one in moments if not _all_over(one[1], numbers)]
            self._moments = moments or [_end(report, numbers)]
            for why in (report.why, *(stop.why for stop in contents.stops)):
                _check_why(why)
        except ValueError as error:
            raise UsageError(f"{name} is no report of dap-mux: {error}") from None
        told = report.end
        if len(moments) > 1:
            told += "; `stepBack` goes back in it"
        if not moments:
            told = f"no rank stopped in it; {report.end_block or report.end}"
        self.about = f"{name}, recorded {report.made}: {told}"
        self.output: Sequence[Mapping[str, str]] = _last_lines(contents)
        self._place = len(self._moments) - 1
        self._next: int | None = None
        self.ranks = {number: RecordedRank(self, self._at(number)) for number in numbers}
        self._stage: Stage | None = None

    def begin(self, stage: Stage) -> None:
        """Show the last stop."""
        self._stage = stage
        for number in self.ranks:
            self._enter(stage, number)
        self._show(stage)

    def move(self, by: int) -> None:
        """Go to another stop; many ranks that are told so at once are one move."""
        assert self._stage is not None
        if self._next is not None:
            return
        place = self._place + by
        if not 0 <= place < len(self._moments):
            raise Unanswered(self._limit(by))
        self._next = place
        self._stage.later(self._go)

    def stay(self) -> None:
        """Forget a move that has not been made."""
        self._next = None

    def _go(self) -> None:
        if self._stage is None or self._next is None:
            return
        self._place, self._next = self._next, None
        self._show(self._stage)
        for number, rank in self.ranks.items():
            over, at = rank.at.state in ENDED, self._at(number)
            if not over and at.state in ENDED:
                self._enter(self._stage, number)
            rank.shows(at)
            if over and at.state not in ENDED:
                self._enter(self._stage, number)

    def _enter(self, stage: Stage, number: int) -> None:
        at = self._at(number)
        if at.state in ENDED:
            found = _EXIT_CODE.search(at.reason)
            stage.ends(number, int(found[1]) if found else None, at.reason)
        else:
            stage.comes(number)

    def _at(self, number: int) -> At:
        return self._moments[self._place][1].get(number, ELSEWHERE)

    def _show(self, stage: Stage) -> None:
        stop, (place, most) = self._moments[self._place][0], (self._place + 1, len(self._moments))
        title = f"stop {place} of {most}, {stop.after_s:.1f} s after the start: {stop.title}"
        if stop.title is THE_END:
            title = THE_END
        verdict = self._report.why if place == most else {}
        stage.shown(title, stop.why or verdict, self._report.end)

    def _limit(self, by: int) -> str:
        if by > 0:
            return "this is the last stop of the recording, and to go on needs a live rank"
        before = self._report.stops_before
        lost = f"; {before} stops before it were not kept" if before else ""
        return f"this is the first stop of the recording{lost}"


def _end(report: Report, numbers: Sequence[int]) -> tuple[Stop, dict[int, At]]:
    """Return how the ranks ended, as the stop of a report that has none. Raises ValueError."""
    states = ((ranks, text.partition(", ")[2]) for text, ranks in report.states.items())
    stop = Stop(0.0, THE_END, tuple(At(ranks, OVER.state, reason) for ranks, reason in states))
    return stop, {**dict.fromkeys(numbers, OVER), **_places(stop, numbers)}


def _last_lines(contents: Contents) -> list[dict[str, str]]:
    """Return what was printed last, with the prefixes of a session, as bodies of `output`."""
    lines: deque[tuple[str, str]] = deque(maxlen=MAX_LINES)
    for one in contents.output:
        category = one.category if one.category in CATEGORIES else "console"
        said = one.ranks and len(contents.report.ranks) > 1
        prefix = f"[{one_line(one.ranks[:MAX_LINE])}] " if said else ""
        for line in one.text.removesuffix("\n").split("\n"):
            lines.append((category, f"{prefix}{line[:MAX_LINE]}\n"))
    return [
        {"category": category, "output": "".join(line for _, line in group)}
        for category, group in groupby(lines, itemgetter(0))
    ]


def _places(stop: Stop, numbers: Sequence[int]) -> dict[int, At]:
    """Return where each rank was. Raises ValueError; takes no longer than there are ranks."""
    found: dict[int, At] = {}
    for at in stop.at:
        if not _RANKS.fullmatch(at.ranks):
            raise ValueError(f"{at.ranks[:80]!r} are no ranks")
        for part in at.ranks.split(","):
            first, _, last = part.partition("-")
            low, high = int(first), int(last or first)
            members = numbers[bisect_left(numbers, low) : bisect_right(numbers, high)]
            if not members or any(each in found for each in members):
                raise ValueError(f"ranks {part} are unknown, or at two places at once")
            found.update(dict.fromkeys(members, at))
    return found


def _all_over(places: dict[int, At], numbers: Sequence[int]) -> bool:
    return all(places.get(number, ELSEWHERE).state in ENDED for number in numbers)


def _check_why(body: Body) -> None:
    """Raise ValueError for what no client could read."""
    if body:
        msgspec.convert(body, Why)
