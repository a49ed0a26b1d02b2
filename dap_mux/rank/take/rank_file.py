"""The file of one rank: a head, and a block for each call and for what it has received."""

from __future__ import annotations

import json
import os
import re
import struct
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from operator import ne
from typing import Any, BinaryIO, NamedTuple, Union

from dap_mux.rank.comm.mpi import METHODS
from dap_mux.rank.comm.operators import OPERATORS

MAGIC = b"dap-mux rank 2\n"
BLOCK = struct.Struct("!QQIB")
"""Before each block: its bytes, how many of those a CRC-32 is of, that, and what the block is."""
HEAD, CALL, RECEIVED, STORE, FILE = range(5)
ORDER = struct.Struct("!IIQ")
"""Before what a call has received: how many parts, how many hashes, and which call; then the length
of each part, and the hashes."""
HASH = 8
"""Bytes of a `fingerprint`. 12.6 MB take it 0.5 ms, and a CRC-32 4 (measured)."""
MAKING = ("Split", "Dup", "Clone", "Split_type")
"""Methods of mpi4py that make communicators."""
ANY_SOURCE = "recv_any_source_"
SOURCE = struct.Struct("!q")
"""The last part of what ANY_SOURCE has received: the sender's number in the group."""
HEAD_FIELDS = {
    **dict.fromkeys(("rank", "world"), int),
    **dict.fromkeys(("argv", "program"), list),
    **dict.fromkeys(("cwd", "executable", "digest"), str),
    **dict.fromkeys(("environment", "random"), dict),
}
CALL_FIELDS = {
    **dict.fromkeys(("order", "number", "step"), int),
    **dict.fromkeys(("group", "operator", "kind", "place"), str),
    **dict.fromkeys(("sent", "outputs"), list),
    "main": bool,
}
STORE_FIELDS: dict[str, type] = dict.fromkeys(("method", "key"), str)
FILE_FIELDS: dict[str, type] = {"path": str, "size": int, "digest": str}
PACKED = 0x80
"""Added to what it is where the block is packed by zlib."""
SMALL, LARGE = 512, 1 << 16
"""Bytes up to which nothing is packed, and above which neither: a step's 12.6 MB of gradients took
zlib 0.5 s, or 30 ms where nearly all were zeros; 5 to be written as they are."""
LET_GO = 1 << 25
"""Bytes after which memory is given back: a file that stays in the system's memory pushes out the
job's own data, and new memory for it is dear: 12.8 MB cost 16 to 21 ms of CPU, so 8 (60 writes)."""
MAX_PARTS = 256
"""The system takes 1,024 at once."""
Buffer = Union[bytes, memoryview]  # noqa: UP007  (a rank may have Python 3.8)
MAX_PACKED = 1 << 31
"""The most bytes that a block may unpack to."""
CALL_PLACE, STEP_PLACE, LAST = "call", "step", "last"
PLACE = re.compile(r"(?:(call|step)[: ])?(\d{1,12})")
OF_RANK = re.compile(r"@(\d{1,7})\Z")


class NotARankFile(Exception):
    """The file is none of ours; the message says why."""


class Writer:
    """Appends whole blocks, each by one call of the system: what is written survives a crash."""

    def __init__(self, path: str, head: dict[str, Any]) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        self._file = os.open(path, flags, 0o600)
        self.bytes = os.write(self._file, MAGIC)
        self._let_go = 0
        self.add(HEAD, json.dumps(head).encode())

    def add(self, what: int, *parts: Buffer) -> None:
        """Append a block of these parts, large ones as they lie in memory.

        Its check sum is of all, or of the first alone, where that has hashes of the others.
        """
        if len(parts) > MAX_PARTS:
            parts = (parts[0], b"".join(parts[1:]))
        size = sum(map(len, parts))
        if SMALL < size <= LARGE:
            packed = zlib.compress(b"".join(parts), 1)
            if len(packed) < size * 0.9:
                what, parts = what | PACKED, (packed,)
        size, check = sum(map(len, parts)), 0
        has_hashes = what == RECEIVED and ORDER.unpack_from(parts[0])[1]
        checked = parts[:1] if has_hashes else parts
        for part in checked:
            check = zlib.crc32(part, check)
        header = BLOCK.pack(size, sum(map(len, checked)), check, what)
        self._write([memoryview(part) for part in (header, *parts)])
        self.bytes += BLOCK.size + size
        if self.bytes - self._let_go > LET_GO:
            self._leave_memory()

    def _leave_memory(self) -> None:
        """Have the system write what is new, and forget what it has written."""
        begin, self._let_go = max(0, self._let_go - 2 * LET_GO), self.bytes
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._file, begin, self.bytes - begin, os.POSIX_FADV_DONTNEED)

    def _write(self, parts: list[memoryview]) -> None:
        while parts:
            done = os.writev(self._file, parts)
            while parts and done >= len(parts[0]):
                done -= len(parts.pop(0))
            if parts:
                parts[0] = parts[0][done:]

    def end(self) -> None:
        """Write no more."""
        os.close(self._file)


class Taken(NamedTuple):
    """What a file has of one call. `block`: where what it received is; None: it never came.

    `call`: `order`, `group`, `number`, `operator`, `kind`, `place`, `step`, `sent` (hashes of the
    inputs) and `outputs` (dtype and shape of each).
    """

    call: dict[str, Any]
    block: tuple[int, int] | None


class RankFile:
    """A file that is read. `head`, the calls in their order, what `stores` answered, and
    which `files` were read.

    `cut`: its end is missing.

    The values stay in the file until they are asked for.
    """

    def __init__(self, path: str) -> None:
        """Raises NotARankFile and OSError."""
        self.cut = False
        self._path = path
        with open(path, "rb") as file:  # noqa: PTH123
            if file.read(len(MAGIC)) != MAGIC:
                raise NotARankFile("it was not written by `dap-mux run --take`")
            self._read(self._blocks(file))

    def _read(self, blocks: Iterator[tuple[int, bytes, tuple[int, int]]]) -> None:
        what, data, _ = next(blocks, (CALL, b"", (0, 0)))
        if what != HEAD:
            raise NotARankFile("it has no head: the rank ended before it made a call")
        self.head: dict[str, Any] = _checked(data, HEAD_FIELDS)
        self.stores: list[dict[str, Any]] = []
        self.files: list[dict[str, Any]] = []
        calls: dict[int, dict[str, Any]] = {}
        received: dict[int, tuple[int, int]] = {}
        for what, data, block in blocks:
            if what == CALL:
                call = _checked(data, CALL_FIELDS)
                calls[call["order"]] = call
            elif what == STORE:
                self.stores.append(_checked(data, STORE_FIELDS))
            elif what == FILE:
                self.files.append(_checked(data, FILE_FIELDS))
            elif what == RECEIVED and len(data) >= ORDER.size:
                received[ORDER.unpack_from(data)[2]] = block
        self.calls = [Taken(calls[order], received.get(order)) for order in sorted(calls)]

    def received(self, taken: Taken, hash_of: Callable[[bytes], bytes] | None) -> list[bytes]:
        """Return the bytes of each output. Raises NotARankFile.

        `hash_of`: as the hashes were made; None where that cannot be done.
        """
        if taken.block is None:
            return []
        with open(self._path, "rb") as file:  # noqa: PTH123
            file.seek(taken.block[0])
            data = file.read(taken.block[1])
        what = BLOCK.unpack_from(data)[3]
        data = data[BLOCK.size :]
        data = _unpacked(data) if what & PACKED else data
        length, hashed, order = ORDER.unpack_from(data)
        try:
            sizes = struct.unpack_from(f"!{length}Q", data, ORDER.size)
        except struct.error as error:
            raise NotARankFile(f"a block of {len(data)} bytes has not {length} parts") from error
        hashes = (HASH,) * min(hashed, length)
        found = [*_split(data[ORDER.size + 8 * length :], (*hashes, *sizes))]
        parts = found[len(hashes) :]
        if any(map(ne, map(hash_of, parts), found[: len(hashes)]) if hash_of else hashes):
            raise NotARankFile(f"what call {order} has received is damaged")
        return parts

    def _blocks(self, file: BinaryIO) -> Iterator[tuple[int, bytes, tuple[int, int]]]:
        end = os.fstat(file.fileno()).st_size
        while True:
            at = file.tell()
            header = file.read(BLOCK.size)
            if not header:
                return
            self.cut = True
            if len(header) < BLOCK.size:
                return
            length, checked, check, what = BLOCK.unpack(header)
            after = at + BLOCK.size + length
            data = file.read(checked) if checked <= length and after <= end else b""
            if len(data) < checked or zlib.crc32(data) != check or after > end:
                return
            file.seek(after)
            self.cut = False
            yield (
                what & ~PACKED,
                _unpacked(data) if what & PACKED else data,
                (at, BLOCK.size + length),
            )


class Place(NamedTuple):
    """Where to stop: before a call is answered, or where a step begins."""

    kind: str
    number: int

    def __str__(self) -> str:
        return f"{self.kind} {self.number}"


def place_of(text: str, file: RankFile) -> Place:
    """Read `31`, `step:31`, `call:8113` or `last`. Raises ValueError for what the file has not.

    `rank_of` reads the rank behind `@`; this ignores it.
    """
    text = OF_RANK.sub("", text)
    match = PLACE.fullmatch(text)
    if match is None and text != LAST:
        raise ValueError("must be a step, call:N or last, for example 31 or call:8113")
    if not file.calls:
        raise ValueError("the record has no calls")
    last = file.calls[-1].call
    if match is None:
        return Place(CALL_PLACE, last["order"])
    place = Place(match[1] or STEP_PLACE, int(match[2]))
    known = place.number <= last["step"]
    if place.kind == CALL_PLACE:
        known = 1 <= place.number <= last["order"]
    if not known:
        raise ValueError(f"the record has calls 1 to {last['order']}, in steps 0 to {last['step']}")
    return place


def rank_of(text: str) -> int | None:
    """Return the 2 of `call:8113@2`, None where no rank is named."""
    match = OF_RANK.search(text)
    return int(match[1]) if match else None


def _checked(data: bytes, fields: dict[str, type]) -> dict[str, Any]:
    """Return an object of JSON that has these fields. Raises NotARankFile."""
    try:
        found = json.loads(data)
    except ValueError as error:
        raise NotARankFile(f"a block is no JSON: {error}") from error
    for name, kind in fields.items():
        if not isinstance(found, dict) or not isinstance(found.get(name), kind):
            raise NotARankFile(f"a block has no {name}, or one that is no {kind.__name__}")
    known = (*METHODS, *MAKING) if found.get("carrier") else OPERATORS
    if found.get("operator", "send") not in known and "operator" in fields:
        raise NotARankFile(f"there is no operator {found['operator'][:80]!r}")
    return dict(found)


def _unpacked(data: bytes) -> bytes:
    unpacking = zlib.decompressobj()
    try:
        found = unpacking.decompress(data, MAX_PACKED)
    except zlib.error as error:
        raise NotARankFile(f"a block cannot be unpacked: {error}") from error
    if unpacking.unconsumed_tail:
        raise NotARankFile("a block unpacks to more than a rank receives at once")
    return found


def _split(data: bytes, sizes: tuple[int, ...]) -> Iterator[bytes]:
    at = 0
    for size in sizes:
        yield data[at : at + size]
        at += size


def digest_of(path: str) -> str:
    """Return the SHA-256 of a file, "" where it cannot be read."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return sha256(file.read()).hexdigest()
    except OSError:
        return ""


def is_main() -> bool:
    """Whether this is the main thread, whose calls are in the program's order."""
    return threading.current_thread() is threading.main_thread()


def joined(order: int, parts: Sequence[Buffer], hashes: Sequence[bytes] = ()) -> list[Buffer]:
    """Return the parts of a block of what a call has received; `hashes`: of the first of them."""
    sizes = struct.pack(f"!{len(parts)}Q", *map(len, parts))
    return [ORDER.pack(len(parts), len(hashes), order) + sizes + b"".join(hashes), *parts]
