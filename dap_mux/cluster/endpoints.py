"""Reads endpoints, as users write them, into rank records.

host:5678            one rank                  [::1]:5678     the same, IPv6
host:5678-5681       four ranks                :5678          on this machine
host:5678+4          four ranks, from 5678 on  @ranks.json    a ranks file
trainer=host:5678    any of these, in a group of that name
k8s:job/train        ranks that a source finds (`source`)
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

import anyio

from dap_mux.cluster.records import LAST_PORT, RankRecord, read_ranks_file
from dap_mux.cluster.source import Description, Source, SourceSpec, reach_directly
from dap_mux.pure.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

# The source of each scheme, by entry point.

ENTRY_POINTS: Final = "dap_mux.sources"


@cache
def registered() -> Mapping[str, EntryPoint]:
    """Return the entry point of each scheme; ours come first, and nobody else replaces them."""
    from importlib.metadata import entry_points  # noqa: PLC0415  (30 modules, seldom used)

    found: dict[str, EntryPoint] = {}
    for each in sorted(entry_points(group=ENTRY_POINTS), key=_is_foreign):
        found.setdefault(each.name, each)
    return found


def _is_foreign(entry: EntryPoint) -> bool:
    return not entry.value.startswith("dap_mux.")


def _class_of(scheme: str) -> Any:
    entry = registered().get(scheme)
    try:
        return None if entry is None else entry.load()
    except (AttributeError, ImportError) as error:
        raise UsageError(f"{scheme}: its source cannot be loaded: {error}") from error


def source_of(word: SourceSpec) -> Source | None:
    """Return the source for this endpoint, None if there is none. Raises `UsageError`."""
    made = _class_of(word.scheme)
    return None if made is None else cast("Source", made(word))


def description_of(scheme: str) -> Description | None:
    """Return what the source of this scheme tells of itself. Raises `UsageError`.

    None if there is no such source.
    """
    made = _class_of(scheme)
    return None if made is None else getattr(made, "description", Description())


def descriptions() -> dict[str, Description]:
    """Return what each source tells of itself, by scheme; this imports all of them."""
    found: dict[str, Description] = {}
    for scheme in registered():
        with suppress(UsageError):  # another package's, which is broken
            found[scheme] = description_of(scheme) or Description()
    return found


# `@ranks.json`: a ranks file, read again whenever it changes.

POLL_INTERVAL_S: Final = 1.0
# A file that was changed this recently can change again with the same mtime.
MTIME_GRANULARITY_S: Final = 2.0


class RanksFile:
    """A `Source`: the ranks listed in a file."""

    lingers = 0.0
    reach = staticmethod(reach_directly)

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._read: tuple[int, int] | None = None
        self._fresh = False
        self._ranks: Sequence[RankRecord] | None = None

    async def discover(self) -> Sequence[RankRecord]:
        """Read the file. Raises `UsageError`, naming file and entry."""
        self._read = self._state()
        self._fresh = (
            self._read is not None and time.time() - self._read[0] / 1e9 < MTIME_GRANULARITY_S
        )
        first = self._ranks is None
        self._ranks = [_identified(one) for one in read_ranks_file(self._path)]
        if first and not self._ranks:
            raise UsageError(f"{self._path}: no ranks are in it")
        return self._ranks

    async def watch(self) -> AsyncIterator[Sequence[RankRecord]]:
        """Yield the ranks whenever they have changed. Raises `UsageError`."""
        while True:
            await anyio.sleep(POLL_INTERVAL_S)
            if self._fresh or self._state() != self._read:
                before, ranks = self._ranks, await self.discover()
                if ranks != before:
                    yield ranks

    def _state(self) -> tuple[int, int] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size


def _identified(record: RankRecord) -> RankRecord:
    """Treat another address or pid as another process of the same rank."""
    return replace(record, incarnation=f"{record.endpoint} {record.pid or ''}")


LOCALHOST = "127.0.0.1"
EXAMPLES = "host:5678, host:5678-5681, host:5678+4, @ranks.json, k8s:job/train"

GROUP = re.compile(r"(?P<group>[A-Za-z_][\w.-]*)=(?P<rest>.*)", re.DOTALL)
SCHEME = re.compile(r"(?P<scheme>[a-z][a-z0-9]*):(?P<rest>.*)", re.DOTALL)
ADDRESS = re.compile(
    r"(?:\[(?P<bracketed>[^\]]*)\]|(?P<host>[^:\[\]]*))"
    r":(?P<first>[0-9]+)(?:-(?P<last>[0-9]+)|\+(?P<count>[0-9]+))?",
    re.ASCII,
)


@dataclass(frozen=True, kw_only=True)
class NamedRanks:
    """One endpoint: either the ranks that it spells out, or a source that finds them.

    `group` is None where the endpoint names none.
    """

    word: str
    group: str | None = None
    records: Sequence[RankRecord] = ()
    source: Source | None = None

    def grouped(self, records: Iterable[RankRecord]) -> list[RankRecord]:
        """Return these ranks in the endpoint's group."""
        return [replace(one, group=self.group) if self.group else one for one in records]


def has_source(word: str) -> bool:
    """Whether a word begins with the scheme of a source, such as `pid:`."""
    match = SCHEME.fullmatch(word)
    return match is not None and match["scheme"] in registered()


def read_endpoint(word: str, python: Path | None = None) -> NamedRanks:
    """Parse an endpoint; a rank's number is None where it is not given. Raises `UsageError`.

    `python`: that of the job, for engines that are asked by it.
    """
    match = GROUP.fullmatch(word)
    group, text = (match["group"], match["rest"]) if match else (None, word)
    source = _source_of(text, python)
    if source is not None:
        return NamedRanks(word=word, group=group, source=source)
    named = NamedRanks(word=word, group=group)
    return replace(named, records=named.grouped(_ranks_of(text, word)))


def number(records: Iterable[RankRecord]) -> list[RankRecord]:
    """Number each rank that has no number by its position in its group.

    Raises `UsageError` if a rank or an address is then a duplicate.
    """
    members: defaultdict[str, int] = defaultdict(int)
    numbered: list[RankRecord] = []
    for record in records:
        place = members[record.group]
        members[record.group] += 1
        numbered.append(record if record.rank is not None else replace(record, rank=place))
    _refuse_duplicates(numbered)
    return numbered


def _refuse_duplicates(records: Iterable[RankRecord]) -> None:
    ranks: dict[tuple[str, int | None], RankRecord] = {}
    addresses: dict[str, RankRecord] = {}
    for record in records:
        other = ranks.setdefault((record.group, record.rank), record)
        if other is not record:
            raise UsageError(
                f"duplicate rank {record.rank} of group {record.group}: "
                f"{other.endpoint} and {record.endpoint}"
            )
        if record.waits:
            continue  # it has no address yet
        twin = addresses.setdefault(record.endpoint, record)
        if twin is not record:
            raise UsageError(
                f"duplicate endpoint {record.endpoint}: {_name(twin)} and {_name(record)}; "
                "a rank accepts one debugger"
            )


def _name(record: RankRecord) -> str:
    return f"rank {record.rank} of group {record.group}"


def _source_of(text: str, python: Path | None) -> Source | None:
    """Return the source for a scheme; a host with the name of a scheme must include its domain."""
    if text.startswith("@"):
        return RanksFile(text[1:])
    match = SCHEME.fullmatch(text)
    if match is None or match["scheme"] == "localhost":
        return None
    return source_of(SourceSpec(match["scheme"], match["rest"], python))


def _ranks_of(text: str, word: str) -> list[RankRecord]:
    if text.startswith("monarch:"):
        raise UsageError(
            f"{word}: a Monarch job has no address that lists its procs; start it with "
            "`dap-mux run -- python JOB.py`, or let its procs connect to `dap-mux attach dial:N`"
        )
    address = ADDRESS.fullmatch(text)
    if address is None:
        _refuse(text, word)
    host = address["bracketed"] or address["host"] or LOCALHOST
    if "=" in host:
        raise UsageError(f"{word!r}: write the name of a group before `=`, a letter and more")
    return [RankRecord(host=host, port=port) for port in _ports_of(address, word)]


def _ports_of(address: re.Match[str], word: str) -> range:
    first = int(address["first"])
    if address["count"] is not None:
        last = first + int(address["count"]) - 1
    else:
        last = int(address["last"] or first)
    if last < first:
        raise UsageError(f"{word}: empty range of ports, {first} to {last}")
    if first < 1 or last > LAST_PORT:
        wrong = first if first < 1 else last
        raise UsageError(f"{word}: {wrong} is not a port (1 to {LAST_PORT})")
    return range(first, last + 1)


def _refuse(text: str, word: str) -> NoReturn:
    if text.count(":") > 1 and not text.startswith("["):
        raise UsageError(f"{word}: write an IPv6 address in brackets, as in [::1]:5678")
    if ":" not in text:
        raise UsageError(f"{word!r}: a port is missing; an endpoint looks like {EXAMPLES}")
    raise UsageError(f"{word!r}: not an endpoint; one looks like {EXAMPLES}")
