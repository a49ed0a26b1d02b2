"""What `ncclras -f json` tells of NCCL's communicators, as lines of evidence.

The format is that of NCCL's own src/ras/client_support.cc, from 2.28.7 on. It prints JSON by hand,
so what is broken is mended where that is plain: text around it, commas too many or too few.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

import msgspec
from msgspec import Struct

from dap_mux.pure.errors import PeerFault
from dap_mux.pure.printable import one_line

MAX_COMMUNICATORS: Final = 256
MAX_LINES: Final = 8
MAX_NAMED: Final = 8
SUCCESS: Final = 0
IN_PROGRESS: Final = 7
"""As nccl.h numbers its results."""
_TOO_FEW: Final = re.compile(r'([\d"}\]el])(\s*\n\s*["{])')
_TOO_MANY: Final = re.compile(r",(\s*[}\]])")


class RankStatus(Struct, frozen=True):
    """Numbers are results of NCCL's; the last two are of ranks that did not tell the others."""

    init_state: int = SUCCESS
    async_error: int = SUCCESS
    abort_flag: bool = False
    unresponsive: bool = False
    considered_dead: bool = False


class RasRank(Struct, frozen=True):
    """`rank`: its number in the communicator; `pid` is -1 for unknown."""

    rank: int
    host: str = ""
    pid: int = -1
    status: RankStatus = RankStatus()
    collective_counts: dict[str, int] = {}


class Communicator(Struct, frozen=True):
    """`size`: of all its ranks, `missing_ranks` among them."""

    size: int
    ranks: list[RasRank] = []
    missing_ranks: list[RasRank] = []


class Report(Struct, frozen=True):
    """All of it that is looked at."""

    communicators: list[Communicator]


def read_report(said: bytes) -> Report:
    """Return what it has printed. Raises PeerFault."""
    text = said.decode("utf-8", "replace")
    inside = text[text.find("{") : text.rfind("}") + 1]
    mended = _TOO_MANY.sub(r"\1", _TOO_FEW.sub(r"\1,\2", inside))
    with suppress(msgspec.DecodeError, RecursionError):
        return msgspec.json.decode(inside, type=Report)
    try:
        return msgspec.json.decode(mended, type=Report)
    except (msgspec.DecodeError, RecursionError) as error:
        raise PeerFault(f"malformed output of ncclras: {error}") from None


def ras_lines(report: Report, numbers: Mapping[int, int]) -> list[str]:
    """Say which ranks are missing, have failed or are behind; `numbers`: ranks by their pids."""
    numbers = {pid: numbers[pid] for pid in numbers.keys() - _of_several_hosts(report)}
    lines = [
        one_line(f"NCCL: {line}")
        for communicator in report.communicators[:MAX_COMMUNICATORS]
        for line in _of(communicator, numbers)
    ]
    return [*dict.fromkeys(lines)][:MAX_LINES]


def _of_several_hosts(report: Report) -> set[int]:
    """Return the numbers of processes that are not those of one machine only."""
    everybody = (rank for one in report.communicators for rank in (*one.ranks, *one.missing_ranks))
    counted = Counter(pid for _, pid in {(rank.host, rank.pid) for rank in everybody})
    return {pid for pid, hosts in counted.items() if hosts > 1}


def _of(one: Communicator, numbers: Mapping[int, int]) -> Iterator[str]:
    where = f"of a communicator of {one.size}"
    dead = [each for each in one.missing_ranks if each.status.considered_dead]
    silent = [each for each in one.missing_ranks if each not in dead and each.status.unresponsive]
    left = [each for each in one.missing_ranks if each not in dead and each not in silent]
    for ranks, what in ((dead, "dead"), (silent, "without an answer"), (left, "not a member")):
        if ranks:
            yield f"{_names(ranks, numbers)} {where}: {what}"
    failed = [each for each in one.ranks if _has_failed(each.status)]
    if failed:
        yield f"{_names(failed, numbers)} {where}: an error, or aborted"
    for kind in sorted({kind for each in one.ranks for kind in each.collective_counts}):
        counts = {each.rank: each.collective_counts.get(kind, 0) for each in one.ranks}
        most = max(counts.values())
        for count in sorted(set(counts.values()) - {most}):
            behind = [each for each in one.ranks if counts[each.rank] == count]
            yield f"{_names(behind, numbers)} {where}: {count} {kind[:40]} launched, others {most}"


def _has_failed(status: RankStatus) -> bool:
    results = {status.init_state, status.async_error} - {SUCCESS, IN_PROGRESS}
    return bool(results) or status.abort_flag


def _names(ranks: Sequence[RasRank], numbers: Mapping[int, int]) -> str:
    """Name ranks by the job's numbers where their processes are known, else as NCCL does."""
    named = [
        f"rank {numbers[each.pid]}"
        if each.pid in numbers
        else f"member {each.rank} (process {each.pid} on {each.host[:80]})"
        for each in ranks[:MAX_NAMED]
    ]
    more = f" and {len(ranks) - MAX_NAMED} more" if len(ranks) > MAX_NAMED else ""
    return ", ".join(named) + more
