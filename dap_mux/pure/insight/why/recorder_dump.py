"""Reads what torch leaves of a rank: a dump of its flight recorder, and its log; both are hostile.

The formats are those of torch's FlightRecorderDetail.hpp, versions 2.0 to 2.10: NCCL's recorder and
the generic one differ in what they leave out.
"""

from __future__ import annotations

import json
import pickle
import pickletools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from dap_mux.pure.insight.stack_tree import Frame, Stack
from dap_mux.pure.insight.why.evidence import Collective, is_library
from dap_mux.pure.printable import one_line

# Reads pickles of plain values, such as torch's flight-recorder dumps, and no others.
#
# A pickle may name any function to be called, so those that name anything are refused before they
# are loaded, as are those that make Python reserve more memory than they have bytes.

PLAIN: Final = frozenset({
    "APPEND", "APPENDS", "BINBYTES", "BINBYTES8", "BINFLOAT", "BINGET", "BININT", "BININT1",
    "BININT2", "BINPUT", "BINUNICODE", "BINUNICODE8", "EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE",
    "FRAME", "LONG1", "LONG_BINGET", "LONG_BINPUT", "MARK", "MEMOIZE", "NEWFALSE", "NEWTRUE",
    "NONE", "PROTO", "SETITEM", "SETITEMS", "SHORT_BINBYTES", "SHORT_BINUNICODE", "STOP", "TUPLE",
    "TUPLE1", "TUPLE2", "TUPLE3",
})  # fmt: skip
"""Names of opcodes that make lists, tuples, dicts, numbers and texts."""
PLACES: Final = frozenset({"BINPUT", "LONG_BINPUT"})
TAKEN: Final = {"APPEND": 1, "SETITEM": 2, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
"""How many values these take from the stack."""
MAX_OPCODES: Final = 8_000_000
MAX_HASHED: Final = 20_000_000  # values of all tuples and keys, each as often as it is there
MAGIC: Final = b"\x80"


class NotADump(ValueError):
    """Why a file is no dump of the flight recorder, or no pickle of plain values."""


def plain_values(data: bytes) -> Any:
    """Return what is pickled. Raises NotADump."""
    try:
        _check(data)
        return pickle.loads(data)  # noqa: S301  (nothing that names a function is left)
    except NotADump:
        raise
    except Exception as error:  # noqa: BLE001  (broken ones raise nearly anything)
        raise NotADump(f"a broken pickle ({type(error).__name__})") from None


def _check(data: bytes) -> None:
    sizes = _Sizes()
    for count, (opcode, argument, _) in enumerate(pickletools.genops(data)):
        if count > MAX_OPCODES:
            raise NotADump(f"a pickle of more than {MAX_OPCODES} steps")
        if opcode.name not in PLAIN:
            raise NotADump(f"a pickle of more than plain values ({opcode.name})")
        # The table of values is made as long as the highest place.
        if opcode.name in PLACES and argument is not None and argument > len(data):
            raise NotADump("a pickle with places far beyond its length")
        sizes.step(opcode.name, argument)


class _Sizes:
    """How many values the tuples on pickle's stack have, each counted as often as it is there.

    A tuple of two of the same tuple, and so on: 60 steps, and the hash of it as a key of a dict
    goes through all 2 ** 60.
    """

    def __init__(self) -> None:
        self._stack: list[int] = []
        self._marks: list[int] = []
        self._memo: dict[int, int] = {}
        self._total = 0

    def step(self, name: str, argument: Any) -> None:
        stack = self._stack
        if name == "MARK":
            self._marks.append(len(stack))
        elif name == "MEMOIZE":
            self._memo[len(self._memo)] = stack[-1]
        elif name in PLACES:
            self._memo[argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(self._memo[argument])
        elif name in ("APPENDS", "SETITEMS", "TUPLE"):
            self._take(self._marks.pop(), pushes=name == "TUPLE")
        elif name in TAKEN:
            self._take(len(stack) - TAKEN[name], pushes=name.startswith("TUPLE"))
        elif name not in ("FRAME", "PROTO", "STOP"):
            stack.append(1)

    def _take(self, start: int, *, pushes: bool) -> None:
        size = 1 + sum(self._stack[start:])
        self._total += size
        if self._total > MAX_HASHED:
            raise NotADump(f"tuples of more than {MAX_HASHED} values")
        del self._stack[start:]
        if pushes:
            self._stack.append(size)


MAX_ENTRIES: Final = 100_000
MAX_VALUES: Final = 4_000_000
JSON_MARKS: Final = (b"[", b"{", b",")
MAX_TENSORS: Final = 64
MAX_DIMENSIONS: Final = 16
MAX_FRAMES: Final = 200
MAX_MEMBERS: Final = 1 << 17
MAX_CHARS: Final = 500
MAX_NUMBER: Final = 1 << 62
NEWEST: Final = 8
"""So many are kept of each group."""
DEFAULT: Final = "default_pg"
NO_NAMES: Final = frozenset({"", "undefined"})
KINDS: Final[Mapping[str, str]] = {
    "_all_gather_base": "all_gather_into_tensor",
    "_reduce_scatter_base": "reduce_scatter_tensor",
    "_broadcast_oop": "broadcast",
    "_reduce_oop": "reduce",
    "all_reduce_barrier": "barrier",
    "all_gather_single": "all_gather_into_tensor",
    "reduce_scatter_single": "reduce_scatter_tensor",
}
"""The recorder's names of collectives for which users have another."""


@dataclass(frozen=True)
class Entry:
    """One record. `stack`: where it was called, () for unknown; `at`: nanoseconds by its clock."""

    collective: Collective
    stack: Stack
    at: int

    @property
    def is_over(self) -> bool:
        """Whether the collective has been completed."""
        return self.collective.state == "completed"


@dataclass(frozen=True)
class Dump:
    """The newest entries of a rank, in the order of time, and the members of the groups."""

    entries: Sequence[Entry]
    members: Mapping[str, Sequence[int]] = field(default_factory=dict)

    @property
    def world(self) -> Sequence[int]:
        """The ranks of the whole job, as far as it says."""
        return max(self.members.values(), key=len, default=())


def read_dump(data: bytes) -> Dump:
    """Return what a file has. Raises NotADump."""
    said = _decoded(data)
    entries = said.get("entries") if isinstance(said, dict) else None
    if not isinstance(entries, list):
        raise NotADump("it has no list of entries, as flight-recorder dumps have")
    if len(entries) > MAX_ENTRIES:
        raise NotADump(f"it has more than {MAX_ENTRIES} entries")
    members = dict(_members(said.get("pg_config")))
    try:
        found = [_entry(each, members) for each in entries]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise NotADump(f"a malformed entry ({type(error).__name__}: {error})"[:200]) from None
    return Dump([*_newest(sorted(found, key=lambda one: one.at))], members)


def _decoded(data: bytes) -> Any:
    if data.startswith(MAGIC):
        return plain_values(data)
    if sum(map(data.count, JSON_MARKS)) > MAX_VALUES:
        raise NotADump(f"JSON of more than {MAX_VALUES} values")
    try:
        return json.loads(data)
    except RecursionError:
        raise NotADump("JSON that is nested too deep") from None
    except ValueError:
        raise NotADump("neither a pickle nor JSON") from None


def _members(groups: Any) -> Iterator[tuple[str, list[int]]]:
    """Yield the ranks of each group that has a name; they are a text such as `[0, 1]`."""
    for key, group in groups.items() if isinstance(groups, dict) else ():
        if isinstance(group, dict):
            name, ranks = group.get("name") or key, group.get("ranks")
            name = one_line(name[:MAX_CHARS]) if isinstance(name, str) else ""
            text = ranks if isinstance(ranks, str) else ""
            found = [int(each) for each in re.findall(r"\d{1,7}", text)[:MAX_MEMBERS]]
            if name and found:
                yield name, found


def _entry(said: Any, members: Mapping[str, list[int]]) -> Entry:
    name, description = (_text(each) for each in said["process_group"])
    kind = _text(said["profiling_name"]).partition(":")
    kind_name = (kind[2] or kind[0])[:MAX_CHARS]
    p2p = bool(said.get("is_p2p"))
    # gloo leaves those that are over at `scheduled`; then they are retired.
    state = "completed" if said.get("retired") is True else _text(said.get("state", ""))
    collective = Collective(
        group=_group(name, description),
        number=_number(said["p2p_seq_id" if p2p else "collective_seq_id"]),
        kind=KINDS.get(kind_name, kind_name),
        members=members.get(name, []),
        p2p=p2p,
        sizes=[*_sizes(said.get("input_sizes"))],
        dtypes=[_text(each) for each in _list(said.get("input_dtypes"), MAX_TENSORS)],
        state=state,
        age=None,
        timeout=_number(said.get("timeout_ms") or 0) / 1e3,
    )
    return Entry(collective, _stack(said.get("frames")), _number(said["time_created_ns"]))


def _group(name: str, description: str) -> str:
    """Return a name that no other group has, as `injected/evidence/flight_recorder.py` does."""
    if description in NO_NAMES:
        return name
    return description if description == DEFAULT else f"{description}/{name}"


def _sizes(said: Any) -> Iterator[list[int]]:
    for each in _list(said, MAX_TENSORS):
        numbers = each if isinstance(each, list) else [each]
        yield [_number(number) for number in numbers[:MAX_DIMENSIONS]]


def _stack(said: Any) -> Stack:
    """Return the frames, the outermost first."""
    return tuple(
        Frame(path, _text(each["name"]), _number(each["line"]), is_library(path))
        for each in reversed(_list(said, MAX_FRAMES))
        if (path := _text(each["filename"]))
    )


def _newest(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Yield the newest of each group, and all that are not over."""
    left: dict[str, int] = {}
    kept: list[Entry] = []
    for entry in reversed(entries):
        group = entry.collective.group
        left[group] = left.get(group, NEWEST) - 1
        if left[group] >= 0 or not entry.is_over:
            kept.append(entry)
    return reversed(kept)


def _list(said: Any, most: int) -> list[Any]:
    return said[:most] if isinstance(said, list) else []


def _text(said: Any) -> str:
    if not isinstance(said, str):
        raise TypeError(f"{type(said).__name__} in place of a text")
    return one_line(said[:MAX_CHARS])


def _number(said: Any) -> int:
    if type(said) is not int or abs(said) > MAX_NUMBER:
        raise TypeError(f"{type(said).__name__} in place of a number")
    return said


# The collectives that torch names where ranks call different ones: with
# TORCH_DISTRIBUTED_DEBUG=DETAIL each rank's log has its own and that of another rank
# (`ProcessGroupWrapper.cpp`).

MAX_FOUND: Final = 10_000
_RUNNING: Final = re.compile(
    r"(but )?Rank (\d{1,6}) is running collective: CollectiveFingerPrint\("
    r"(?:SequenceNumber=(\d{1,12})(?:, )?)?OpType=(\w{1,40})"
    r"(?:, TensorShape=([\[\]\d, ]{0,2000}), TensorDtypes=([\w, ]{0,500}), Tensor)?"
)
_SHAPE: Final = re.compile(r"\[([\d, ]*)\]")
_DIGITS: Final = re.compile(r"\d{1,12}")
LOGGED_KINDS: Final = {
    "ALLREDUCE": "all_reduce",
    "ALLREDUCE_COALESCED": "all_reduce_coalesced",
    "ALLGATHER": "all_gather",
    "_ALLGATHER_BASE": "all_gather_into_tensor",
    "ALLTOALL": "all_to_all",
    "ALLTOALL_BASE": "all_to_all_single",
    "REDUCE_SCATTER": "reduce_scatter",
    "_REDUCE_SCATTER_BASE": "reduce_scatter_tensor",
}


class Running(NamedTuple):
    """The last collective of each rank: as its own log has it, and as that of another rank has.

    What another one says of a call without tensors, such as `barrier`, is wrong in torch 2.13.
    """

    own: dict[int, Collective]
    by_others: dict[int, Collective]

    def add(self, other: Running) -> None:
        """Take what another log has."""
        self.own.update(other.own)
        self.by_others.update(other.by_others)

    def of(self, rank: int) -> Collective | None:
        """Return what a rank is in."""
        return self.own.get(rank) or self.by_others.get(rank)


def collectives_in(text: str) -> Running:
    """Return the last collective of each rank that a log names."""
    found = Running({}, {})
    for at, said in enumerate(_RUNNING.finditer(text)):
        if at >= MAX_FOUND:
            break
        but, rank, number, kind, shapes, dtypes = said.groups()
        (found.by_others if but else found.own)[int(rank)] = Collective(
            group="",
            number=int(number) if number else -1,
            kind=LOGGED_KINDS.get(kind, kind.lower()),
            sizes=_shapes(shapes or ""),
            dtypes=[each for each in re.split(r"[ ,]+", dtypes or "") if each][:MAX_TENSORS],
            state="started",
            age=None,
        )
    return found


def _shapes(text: str) -> list[list[int]]:
    found = _SHAPE.findall(text)[:MAX_TENSORS]
    return [[int(number) for number in _DIGITS.findall(shape)] for shape in found]
