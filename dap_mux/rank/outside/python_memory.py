"""The stacks of another Python process, read from its memory: CPython 3.11 to 3.13 on Linux.

The process is neither stopped nor asked, so anything may change while it is read: whatever does
not fit raises `Unreadable`, and every loop has a bound. The result has the shape of
`py-spy dump --json --locals`.
"""

from __future__ import annotations

import json
import os
import re
import struct
from typing import Any, BinaryIO

NO_RIGHT = "its memory cannot be read"
MAX_THREADS = 64
MAX_FRAMES = 200
MAX_LOCALS = 24
FRAMES_WITH_LOCALS = 16
"""The innermost frames of a thread whose variables are read."""
MAX_TEXT = 400
MAX_SHOWN = 80
MAX_TABLE_BYTES = 1 << 20
MAX_SYMBOLS_BYTES = 64 << 20
_POINTER = 8
_PYTHON_FILE = re.compile(r"python\d[^/]*$")
_COOKIE = b"xdebugpy"
_MOVABLE = 3  # ET_DYN
_TABLES_OF_SYMBOLS = (11, 2)  # SHT_DYNSYM, SHT_SYMTAB
_OWNED_BY_C = 3
"""The owner of a frame that only marks the way from C into Python."""

# Offsets, as the headers of each version give them (64 bits, with the GIL). In 3.13 the process
# has a table of its own, `_Py_DebugOffsets`, because they differ between its builds.
_COMMON = {
    "next": 8, "f_localsplus": 72, "co_filename": 112, "co_name": 120, "co_linetable": 136,
    "co_localsplusnames": 96, "tp_name": 24, "ob_item": 24, "ob_sval": 32,
}  # fmt: skip
_OFFSETS = {
    (3, 11): {
        **_COMMON, "interpreters": 40, "threads": 16, "native_thread_id": 160, "cframe": 56,
        "current_frame": 8, "previous": 48, "f_code": 32, "instruction": 56, "owner": 69,
        "co_code": 184, "co_firstlineno": 72, "ascii": 48, "compact": 72,
    },
    (3, 12): {
        **_COMMON, "interpreters": 40, "threads": 72, "native_thread_id": 144, "cframe": 56,
        "current_frame": 0, "previous": 8, "f_code": 0, "instruction": 56, "owner": 70,
        "co_code": 192, "co_firstlineno": 68, "ascii": 40, "compact": 56,
    },
}  # fmt: skip
# The places in the table of 3.13, in words of 8 bytes after the cookie.
_TABLE = {
    "interpreters": 5, "threads": 9, "next": 21, "current_frame": 23, "native_thread_id": 25,
    "previous": 29, "f_code": 30, "instruction": 31, "f_localsplus": 32, "owner": 33,
    "co_filename": 35, "co_name": 36, "co_linetable": 38, "co_firstlineno": 39,
    "co_localsplusnames": 41, "co_code": 43, "tp_name": 47, "ob_item": 51,
}  # fmt: skip
_TABLE_WORDS = 80
_MAX_OFFSET = 1 << 20
_FREE_THREADED = 1


class Unreadable(Exception):
    """The stacks of a process cannot be read; the text says why."""


class Memory:
    """The memory of a process, open until we end. Raises Unreadable where it may not be read."""

    def __init__(self, pid: int) -> None:
        try:
            self._file = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise Unreadable(f"{NO_RIGHT}: {error.strerror}") from None

    def read(self, address: int, size: int) -> bytes:
        """Return so many bytes. Raises Unreadable."""
        try:
            found = os.pread(self._file, size, address)
        except (OSError, OverflowError) as error:
            raise Unreadable(f"nothing at {address:#x}: {error}") from None
        if len(found) < size:
            raise Unreadable(f"only {len(found)} bytes at {address:#x}")
        return found

    def word(self, address: int) -> int:
        """Return an unsigned number of 8 bytes, or a pointer."""
        return int.from_bytes(self.read(address, _POINTER), "little")

    def c_text(self, address: int) -> str:
        """Return a text that ends with a zero, within one page."""
        rest = self.read(address, min(MAX_TEXT, 4096 - address % 4096))
        return rest.partition(b"\0")[0].decode("utf-8", "replace")


# Where Python's own variables are: in the symbols of its program or library.


def _load_address(pid: int) -> list[tuple[str, int]]:
    """Return the path of each Python program or library in a process, and where it begins."""
    found: dict[str, int] = {}
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
        for line in file:
            parts = line.split(maxsplit=5)
            path = parts[5].rstrip("\n").replace(" (deleted)", "") if len(parts) == 6 else ""
            if _PYTHON_FILE.search(path) and int(parts[2], 16) == 0:
                found.setdefault(path, int(parts[0].partition("-")[0], 16))
    return [*found.items()]


def _symbols(path: str, names: tuple[str, ...]) -> tuple[bool, dict[str, int]]:
    """Return whether an ELF file is moved when it is loaded, and the addresses of symbols in it."""
    found: dict[str, int] = {}
    with open(path, "rb") as file:  # noqa: PTH123
        header = file.read(64)
        if header[:5] != b"\x7fELF\x02" or len(header) < 64:
            raise Unreadable(f"{path} is not a 64-bit program")
        moved = struct.unpack_from("<H", header, 16)[0] == _MOVABLE
        (place,) = struct.unpack_from("<Q", header, 40)
        size, count = struct.unpack_from("<HH", header, 58)
        sections = [
            struct.unpack_from("<IIQQQQI", _part(file, place + each * size, size))
            for each in range(count)
        ]
        for kind in _TABLES_OF_SYMBOLS:
            for table in (each for each in sections if each[1] == kind):
                texts = _part(file, *sections[table[6]][4:6])
                wanted = {texts.find(f"\0{name}\0".encode()) + 1: name for name in names}
                for row in struct.iter_unpack("<IBBHQQ", _part(file, *table[4:6])):
                    if row[0] and row[0] in wanted and row[4]:
                        found.setdefault(wanted[row[0]], row[4])
            if len(found) == len(names):
                break
    return moved, found


def _part(file: BinaryIO, place: int, size: int) -> bytes:
    if size > MAX_SYMBOLS_BYTES:
        raise Unreadable("its program has too many symbols")
    file.seek(place)
    return file.read(size)


_known: dict[tuple[int, int], tuple[bool, dict[str, int]]] = {}


def _runtime(pid: int, memory: Memory) -> tuple[int, tuple[int, int]]:
    """Return the address of `_PyRuntime`, and the version of this Python."""
    names = ("_PyRuntime", "Py_Version")
    try:
        for path, base in _load_address(pid):
            seen = f"/proc/{pid}/root{path}"
            about = os.stat(seen)  # noqa: PTH116
            key = about.st_dev, about.st_ino
            if key not in _known:
                _known[key] = _symbols(seen, names)
            moved, found = _known[key]
            if len(found) == len(names):
                start = base if moved else 0
                version = memory.word(start + found["Py_Version"])
                return start + found["_PyRuntime"], (version >> 24 & 0xFF, version >> 16 & 0xFF)
    except (OSError, struct.error, ValueError, IndexError) as error:
        raise Unreadable(f"its program cannot be read: {error}") from None
    raise Unreadable("Python before 3.11 is read by py-spy only, which is not here")


class PythonProcess:
    """A process whose stacks can be read. Raises Unreadable for one that is not such."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.memory = Memory(pid)
        self._runtime, self.version = _runtime(pid, self.memory)
        self._at = self._offsets()
        self._codes: dict[int, tuple[str, str, int, bytes, int]] = {}
        self._types: dict[int, str] = {}
        self._lines: dict[tuple[int, int], int] = {}

    def _offsets(self) -> dict[str, int]:
        if self.version in _OFFSETS:
            return _OFFSETS[self.version]
        if self.version != (3, 13):
            major, minor = self.version
            raise Unreadable(f"Python {major}.{minor} is read by py-spy only, which is not here")
        table = self.memory.read(self._runtime, _TABLE_WORDS * _POINTER)
        words = struct.unpack(f"<{_TABLE_WORDS}Q", table)
        found = {name: words[place] for name, place in _TABLE.items()}
        if table[:8] != _COOKIE or words[2] == _FREE_THREADED or max(found.values()) > _MAX_OFFSET:
            raise Unreadable("this build of Python 3.13 is read by py-spy only, which is not here")
        return {**found, "ob_sval": 32, "ascii": 40, "compact": 56}

    def threads(self) -> list[dict[str, Any]]:
        """Return its threads, frames innermost first. Raises Unreadable."""
        at, memory = self._at, self.memory
        interpreter = memory.word(self._runtime + at["interpreters"])
        thread = memory.word(interpreter + at["threads"])
        found: list[dict[str, Any]] = []
        while thread and len(found) < MAX_THREADS:
            tid = memory.word(thread + at["native_thread_id"])
            name = "MainThread" if tid == self.pid else None
            frame = thread
            if "cframe" in at:
                frame = memory.word(thread + at["cframe"])
            frame = memory.word(frame + at["current_frame"])
            found.append({"os_thread_id": tid, "thread_name": name, "frames": self._frames(frame)})
            thread = memory.word(thread + at["next"])
        return found

    def _frames(self, frame: int) -> list[dict[str, Any]]:
        at = self._at
        found: list[dict[str, Any]] = []
        for _ in range(MAX_FRAMES):
            if not frame:
                break
            fields = self.memory.read(frame, at["f_localsplus"])
            code, instruction, previous = (
                struct.unpack_from("<Q", fields, at[name])[0]
                for name in ("f_code", "instruction", "previous")
            )
            if fields[at["owner"]] != _OWNED_BY_C:
                name, path, first, table, names = self._code(code)
                unit = (instruction - code - at["co_code"]) // 2
                if (code, unit) not in self._lines:
                    self._lines[code, unit] = line_at(table, first, unit)
                one: dict[str, Any] = {"name": name, "filename": path}
                one["line"] = self._lines[code, unit]
                if len(found) < FRAMES_WITH_LOCALS:
                    one["locals"] = self._locals(names, frame + at["f_localsplus"])
                found.append(one)
            frame = previous
        return found

    def _code(self, code: int) -> tuple[str, str, int, bytes, int]:
        """Return the name, path, first line, table of lines and address of names of a code."""
        if code not in self._codes:
            at, memory = self._at, self.memory
            name = self._text(memory.word(code + at["co_name"]))
            path = self._text(memory.word(code + at["co_filename"]))
            first = int.from_bytes(memory.read(code + at["co_firstlineno"], 4), "little")
            table = memory.word(code + at["co_linetable"])
            size = memory.word(table + 16)
            if size > MAX_TABLE_BYTES:
                raise Unreadable("a table of lines is malformed")
            lines = memory.read(table + at["ob_sval"], size)
            names = memory.word(code + at["co_localsplusnames"])
            self._codes[code] = name, path, first, lines, names
        return self._codes[code]

    def _text(self, address: int) -> str:
        """Return a str, cut after MAX_TEXT characters."""
        length = self.memory.word(address + 16)
        state = int.from_bytes(self.memory.read(address + 32, 4), "little")
        kind, compact, is_ascii = state >> 2 & 7, state >> 5 & 1, state >> 6 & 1
        if not compact or kind not in (1, 2, 4):
            raise Unreadable("a text is malformed")
        start = address + self._at["ascii" if is_ascii else "compact"]
        data = self.memory.read(start, min(length, MAX_TEXT) * kind)
        coding = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}[kind]
        return data.decode(coding, "replace")

    def _locals(self, names: int, values: int) -> list[dict[str, str]]:
        """Return the variables of a frame that can be shown."""
        count = min(self.memory.word(names + 16), MAX_LOCALS)
        size = count * _POINTER
        pointers = struct.unpack(f"<{count}Q", self.memory.read(values, size))
        texts = struct.unpack(f"<{count}Q", self.memory.read(names + self._at["ob_item"], size))
        found = []
        for name, value in zip(texts, pointers):  # noqa: B905  (Python 3.8)
            if not value:
                continue
            try:
                found.append({"name": self._text(name), "repr": self._shown(value)})
            except Unreadable:  # it has just been replaced
                continue
        return found

    def _shown(self, value: int) -> str:
        """Return how a value is shown: a number or short text, else its type and place."""
        kind = self.memory.word(value + 8)
        if kind not in self._types:
            self._types[kind] = self.memory.c_text(self.memory.word(kind + self._at["tp_name"]))
        name = self._types[kind]
        if name == "NoneType":
            return "None"
        if name in ("int", "bool"):
            number = self._number(value)
            if number is not None:
                return str(bool(number)) if name == "bool" else str(number)
        if name == "float":
            return repr(struct.unpack("<d", self.memory.read(value + 16, 8))[0])
        if name == "str":
            return json.dumps(self._text(value)[:MAX_SHOWN], ensure_ascii=False)
        return f"<{name} at {value:#x}>"

    def _number(self, value: int) -> int | None:
        """Return an int, None for one of more than two digits of 30 bits."""
        size, low, high = struct.unpack("<qII", self.memory.read(value + 16, 16))
        if self.version == (3, 11):
            sign, count = (size > 0) - (size < 0), abs(size)
        else:
            sign, count = 1 - (size & 3), size >> 3
        digits = {0: 0, 1: low, 2: low + (high << 30)}
        return sign * digits[count] if count in digits else None


def line_at(table: bytes, line: int, unit: int) -> int:
    """Return the line of an instruction by the table of its code (CPython 3.11 and later).

    `line`: the first one. Each entry begins with a byte whose highest bit is set: a kind, and how
    many instructions it is for. What follows are 6 bits a byte, the lowest first; bit 6: there are
    more.
    """
    at, place = 0, 0
    while place < len(table):
        head, place = table[place], place + 1
        kind, count = head >> 3 & 15, (head & 7) + 1
        if kind in (13, 14):
            number, shift = 0, 0
            for byte in table[place : place + 8]:
                number |= (byte & 63) << shift
                shift += 6
                if not byte & 64:
                    break
            line += -(number >> 1) if number & 1 else number >> 1
        elif 10 <= kind <= 12:
            line += kind - 10
        at += count
        if unit < at:
            return line
        while place < len(table) and not table[place] & 128:
            place += 1
    return line
