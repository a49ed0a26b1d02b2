"""Which rank of a failed job failed first, and how: from what ranks have left behind.

A failure that is a consequence by its own words (a connection that a peer has closed, a time-out,
SIGTERM) is never first where another rank has a cause of its own. Among causes the earliest is
first, and that is a guess where two of them lie close together, or on hosts with clocks of their
own.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Final

from msgspec import Struct, convert, field
from msgspec.structs import replace

from dap_mux.pure.grouping import grouped
from dap_mux.pure.insight.ended import Ended, Written
from dap_mux.pure.insight.why.evidence import is_library
from dap_mux.pure.printable import one_line
from dap_mux.pure.rank_sets import RankId, fold, name_ranks

CLOSE_S: Final = 0.05
"""Two failures within it are in an order that nothing is built on."""
TOGETHER_S: Final = 1.0
MAX_LINES: Final = 8
MAX_HOW: Final = 160
NEVER_CAME: Final = "never reported here; what it printed, or its launcher, says why"
CONSEQUENCES: Final = (
    "the others failed for want of a rank: closed connections, time-outs, their launcher's signal"
)
LOST: Final = frozenset({"ConnectionError", "EOFError"})
HAD_LEFT: Final = "ended as if it were done, while others ran on"
LEFT_ALONE: Final = "most ranks failed after that, and say themselves that another one was missing"
WITHOUT_A_WORD: Final = "killed, or ended by a library without a word (exit code unknown)"
BY_ITSELF: Final = "ended by itself (exit code unknown)"
UNCAUGHT, NO_PROGRAM = 1, 2
"""Python's exit codes after an exception, and where it cannot open its program."""
_NO_HOSTS: Final[Mapping[RankId, str]] = {}
_FRAME: Final = re.compile(r'  File "(.*)", line (\d{1,9}),? in (.*)')
_ERROR: Final = re.compile(r"^[A-Za-z_][\w.]*(?:: .*)?$", re.MULTILINE)
_CURRENT: Final = "Current thread 0x"
_THREAD: Final = "Thread 0x"
_SOURCE: Final = re.compile(r"^\[[^\]\s]*[/\\][^\]\s]*\] ")
_ADVICE: Final = ". This is typically caused by"
"""How gloo goes on after what has happened."""
_DIGITS: Final = re.compile(r"0x[0-9a-f]+|\d+")
# Ranks differ in these by nature, or they say nothing of the job.
_NO_VERSIONS: Final = frozenset({"debugpy", "dap_mux"})


class Place(Struct, frozen=True):
    """A line of the user's own code, with the values of its names. `called`: what it had called."""

    file: str = ""
    line: int = 0
    function: str = ""
    called: str = ""
    source: str = ""
    values: dict[str, str] = {}

    def __str__(self) -> str:
        """Return `train.py:41 in step`."""
        name = PurePath(self.file.replace("\\", "/")).name
        return f"{name}:{self.line}" + (f" in {self.function}" if self.function else "")


class First(Struct, frozen=True):
    """The ranks that failed first, alike. `certain`: False for a guess; `because`: either's reason.

    `how`: in one line; `message`: the whole of an exception's text. `printed`: what these ranks
    alone printed last.
    """

    ranks: str
    how: str
    certain: bool
    because: str
    host: str
    pid: int
    code: int | None
    message: str
    place: Place
    stack: list[str]
    printed: list[str]


class Other(Struct, frozen=True):
    """Ranks that ended otherwise than in peace after the first. `after`: seconds."""

    ranks: str
    after: float
    how: str


class EndOfJob(Struct, frozen=True):
    """The end of a job. `missing`: ranks that never started; `versions`: by package and rank.

    `code`: the launcher's exit code as a shell shows it. `unseen`: by host, ranks that called the
    session from there, and have left what they leave on that host.
    """

    code: int
    first: First | None
    others: list[Other]
    missing: str = ""
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    next: str = ""
    unseen: dict[str, str] = field(default_factory=dict)


def end_of_job(
    code: int,
    ranks: Sequence[Ended],
    missing: Iterable[RankId],
    again: str,
    *,
    launcher: Ended | None = None,
    unseen: Mapping[RankId, str] = _NO_HOSTS,
) -> EndOfJob:
    """Find the first rank. `again`: the command that started the job, without its options.

    `launcher`: what has failed that is no rank. `unseen`: the hosts of ranks that have left nothing
    here.
    """
    absent = [*missing]
    worker = _of_worker(launcher, absent)
    if worker is not None:
        ranks = [*ranks, worker]
        absent.remove(worker.rank)
    failed = sorted((one for one in ranks if one.failed), key=lambda one: one.since)
    causes = [one for one in failed if not one.is_consequence]
    if causes and all(one.is_wordless for one in causes):
        # Python has ended one, with an exit code that only its launcher knows: `raise SystemExit`.
        quiet = [one for one in ranks if one.code is None and not one.failed]
        if len(quiet) < len(failed):
            causes = sorted([*quiet, *causes], key=lambda one: one.since)
    on_host = grouped((host, rank) for rank, host in unseen.items())
    by_host = {host: _named(of) for host, of in on_host.items()}
    end = EndOfJob(code, None, [], _named(absent), _versions(ranks), "", by_host)
    if unseen and not causes:
        where = f"which ran on {', '.join(by_host)}, out of this session's sight"
        return replace(end, first=_absent([*unseen], where), others=_others(failed[:1], failed))
    if absent and failed and not causes:
        first_lost = _absent(absent, NEVER_CAME)
        return replace(end, first=first_lost, others=_others(failed[:1], failed), missing="")
    if not failed:
        return replace(end, first=_of_launcher(launcher, ranks))
    if early := _who_left(ranks, failed):
        gone = _described(early[0], early, ranks, certain=False, because=LEFT_ALONE)
        gone, console = replace(gone, how=HAD_LEFT), f"dap-mux run --console {again}"
        return replace(end, first=gone, others=_others(early, failed), next=console)
    first = (causes or failed)[0]
    alike = [one for one in failed if _same(one, first)] or [first]
    rest = [one for one in failed if not _same(one, first)]
    certain, because = _belief(first, alike, rest)
    return replace(
        end,
        first=_described(first, alike, ranks, certain=certain, because=because),
        others=_others([first], rest),
        next=_next(first, again),
    )


def _absent(ranks: Sequence[RankId], how: str) -> First:
    """Describe ranks of which nothing is known but that the others have waited for them."""
    because = "the others, as far as they failed, failed for want of another rank"
    return First(_named(ranks), how, False, because, "", 0, None, "", Place(), [], [])


def _of_launcher(one: Ended | None, ranks: Sequence[Ended]) -> First | None:
    """Describe the failure of a program that is no rank, where it has written of one."""
    if one is None or one.written is None:
        return None
    because = "no rank has failed" if ranks else "it failed before there was a rank"
    found = _described(one, [], ranks, certain=True, because=because)
    is_pips = PurePath(found.place.file).parent.name == "bin"  # a line of it says nothing
    return replace(found, ranks=one.written.program, place=Place() if is_pips else found.place)


def _of_worker(launcher: Ended | None, absent: Sequence[RankId]) -> Ended | None:
    """Return what is known of a process that never became a rank, though it was to be one.

    By itself, or as `torch.multiprocessing.spawn` has said of it.
    """
    said = launcher.written if launcher is not None else None
    if launcher is None or said is None:
        return None
    number = said.local_rank if said.worker is None else said.worker
    rank = next((one for one in absent if one[1] == number), None)
    if rank is None:
        return None
    if said.worker is None:
        return replace(launcher, rank=rank, code=said.code, written=replace(said, program=""))
    written, errors = None, _ERROR.findall(said.message)
    if said.code is None and errors:
        kind, _, message = errors[-1].partition(": ")
        own = [each for each in _FRAME.findall(said.message) if not is_library(each[0])]
        file, line, function = own[-1] if own else ("", "0", "")
        name = kind.rpartition(".")[2]
        written = Written("exception", said.time, 0, name, message, None, file, int(line), function)
    reason = said.message.partition(" terminated with ")[2]
    return Ended(rank, launcher.host, 0, launcher.at, said.code, reason, written)


def _who_left(ranks: Sequence[Ended], failed: Sequence[Ended]) -> list[Ended]:
    """Return the few that ended in peace before all others failed for want of them."""
    left = [one for one in ranks if not one.failed and one.since < failed[0].since]
    lost = all(map(_has_lost_one, failed)) and len(left) < len(failed)
    return sorted(left, key=lambda one: one.since) if lost else []


def _has_lost_one(one: Ended) -> bool:
    """Whether it failed for want of another rank, by its words or the exception's kind."""
    return one.is_consequence or (one.failure is not None and one.failure.type in LOST)


def _same(one: Ended, other: Ended) -> bool:
    """Whether two ranks failed alike: of the same thing at the same line."""
    if one.rank == other.rank:
        return True
    mine, its = one.failure, other.failure
    if mine is None or its is None or one.is_consequence:
        return False
    about = (mine.kind, mine.type, mine.file, mine.line, _DIGITS.sub("#", mine.message))
    return about == (its.kind, its.type, its.file, its.line, _DIGITS.sub("#", its.message))


def _belief(first: Ended, alike: Sequence[Ended], rest: Sequence[Ended]) -> tuple[bool, str]:
    """Return whether it is certain that these were first, and why that is believed."""
    if len(alike) > 1 and not rest:
        return True, "all that failed did so alike"
    if not rest:
        return True, "no other rank failed"
    if first.is_consequence:
        return False, "it was the earliest, but says itself that another rank was missing or slow"
    if first.is_wordless and not first.failed:
        return False, "it came to its end before the others, which were killed or failed after it"
    # Who ends without a word after a failure that is known has most likely been ended for it.
    others = [one for one in rest if not one.is_consequence]
    if first.failure is not None:
        others = [one for one in others if one.code is not None or one.failure is not None]
    if not others:
        return True, CONSEQUENCES
    gap = others[0].since - first.since
    text = f"it failed {seconds(gap)} before {_name([others[0]])}"
    if others[0].host != first.host:
        return False, f"{text}, by clocks of two hosts"
    return gap >= CLOSE_S, text


def _described(
    first: Ended, alike: Sequence[Ended], ranks: Sequence[Ended], *, certain: bool, because: str
) -> First:
    failure = first.failure
    others = [one for one in ranks if one not in alike]
    return First(
        _name(alike),
        _how(first),
        certain,
        because,
        first.host,
        first.pid,
        first.code,
        failure.message if failure is not None else "",
        _place(first),
        failure.stack if failure is not None else _crash_stack(first.crash),
        _alone(first, others),
    )


def _place(one: Ended) -> Place:
    failure = one.failure
    if failure is not None:
        return convert(failure, Place, from_attributes=True)
    own = [frame for frame in _crash_frames(one.crash) if not is_library(frame[0])]
    return Place(own[0][0], int(own[0][1]), own[0][2]) if own else Place()


def _how(one: Ended) -> str:
    """Return `ValueError: no such layer`, `os._exit(3)` or `SIGSEGV (11)`."""
    failure = one.failure
    if failure is None:
        crash = one.crash.partition("\n")[0].removeprefix("Fatal Python error: ").strip()
        unknown = WITHOUT_A_WORD if one.written is None else BY_ITSELF
        words = one.reason or (unknown if one.code is None else f"code {one.code}")
        if one.code == NO_PROGRAM and one.written is not None:
            crash = "Python could not open its program"
        return one_line(f"{words}: {crash}" if crash else words)
    if failure.kind == "exception":
        message = _short(failure.message)
        ended = not one.is_consequence and one.code not in (None, 0, UNCAUGHT)
        then = f", then {one.reason}" if ended and one.reason else ""
        return one_line(f"{failure.type}: {message}{then}" if message else f"{failure.type}{then}")
    text = f": {failure.message.strip()}" if failure.message else ""
    return one_line(f"{failure.kind}({failure.code}){text}")


def _short(message: str) -> str:
    """Return the first line without the place in a library's source that it begins with."""
    line = _SOURCE.sub("", message.strip().partition("\n")[0]).partition(_ADVICE)[0]
    return line if len(line) <= MAX_HOW else f"{line[:MAX_HOW]}..."


def _others(first: Sequence[Ended], rest: Sequence[Ended]) -> list[Other]:
    """Return the others, those that ended alike together. `first`: since when time is counted."""
    groups = grouped(((_DIGITS.sub("#", _how(one)), str(_place(one))), one) for one in rest)
    found = []
    for group in groups.values():
        place, how = _place(group[0]), _how(group[0])
        where = f" at {place}" if place.line else ""
        called = f", which called {place.called}" if place.called else ""
        after = max(0.0, min(one.since for one in group) - first[0].since)
        found.append(Other(_name(group), after, f"{how}{where}{called}"))
    return found


def _alone(one: Ended, others: Sequence[Ended]) -> list[str]:
    """Return the last lines that no other rank has printed; numbers in them do not count."""
    theirs = {_DIGITS.sub("#", line) for other in others for line in _printed(other).splitlines()}
    lines = [each for each in _printed(one).splitlines() if each.strip()]
    own = [line for line in lines if _DIGITS.sub("#", line) not in theirs]
    return own[-MAX_LINES:]


def _printed(one: Ended) -> str:
    """Return the output before the failure: the traceback that follows it is said otherwise."""
    return one.failure.printed if one.failure is not None else one.printed


def _crash_frames(crash: str) -> list[tuple[str, str, str]]:
    """Return the frames of the thread that crashed, innermost first: file, line and function."""
    current = (crash.partition(_CURRENT)[2] or crash).partition(_THREAD)[0]
    return [(each[1], each[2], each[3]) for each in _FRAME.finditer(current)]


def _crash_stack(crash: str) -> list[str]:
    frames = [each for each in reversed(_crash_frames(crash)) if not is_library(each[0])]
    return [f"{PurePath(file).name}:{line} in {function}" for file, line, function in frames]


def _versions(ranks: Sequence[Ended]) -> dict[str, dict[str, str]]:
    """Return the packages whose versions differ between ranks: the ranks by version."""
    found: dict[str, dict[str, list[RankId]]] = defaultdict(lambda: defaultdict(list))
    for one in ranks:
        for name, version in (one.written.versions if one.written else {}).items():
            found[name][version].append(one.rank)
    return {
        name: {version: fold(of) for version, of in versions.items()}
        for name, versions in sorted(found.items())
        if len(versions) > 1 and name not in _NO_VERSIONS
    }


def _next(first: Ended, again: str) -> str:
    failure = first.failure
    if failure is not None and failure.kind == "exception":
        return f"dap-mux run --hold {again}"
    return f"dap-mux run --console {again}"


def _name(of: Sequence[Ended]) -> str:
    return _named([one.rank for one in of])


def _named(ids: Sequence[RankId]) -> str:
    return name_ranks(ids, ids[0][0]) if ids else ""


def seconds(gap: float) -> str:
    """Return `1.5 s` or `340 ms`."""
    return f"{gap:.1f} s" if gap >= TOGETHER_S else f"{gap * 1000:.0f} ms"
