"""What a rank leaves behind for the session that started it: how it failed, what it printed last.

Beside the file that says where the rank listens lie up to three more: `.end` (JSON, how the program
failed), `.printed` (the last of what Python wrote, in a ring that outlives SIGKILL) and `.crash`
(Python's frames at a fatal signal, written by `faulthandler`). `dap_mux.session.end_of_job` reads
them.
"""

from __future__ import annotations

import ast
import atexit
import faulthandler
import linecache
import mmap
import os
import shutil
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from sysconfig import get_paths
from traceback import walk_stack
from types import FrameType, TracebackType
from typing import Any, Final, NoReturn

from dap_mux.rank.environ import OUTPUT_BYTES
from dap_mux.rank.injected.evidence.static_values import MISSING, value_of
from dap_mux.rank.injected.tensor_summary import seen
from dap_mux.rank.ready import rendezvous_file, write_ready_file
from dap_mux.rank.redaction import kind_of
from dap_mux.rank.redaction import redacted as without_secrets

END, PRINTED, CRASH = ".end", ".printed", ".crash"
FOLDER: Final = "dap-mux-ranks-kept-"
IN_PEACE: Final = "in peace"
EXITED: Final = "sys.exit"
"""Also for `raise SystemExit`, of which nothing else tells."""
COUNT_BYTES: Final = 8
"""At the start of the ring: how many bytes have been written in all."""
RING_BYTES: Final = 4096
MAX_RING_BYTES: Final = 128 * 1024
COUNT: Final = struct.Struct("<Q")
MAX_MESSAGE: Final = 2000
MAX_VALUE: Final = 200
MAX_VALUES: Final = 8
MAX_ITEMS: Final = 4
MAX_FRAMES: Final = 8
MAX_VERSIONS: Final = 60


class BlackBox:
    """Writes this process's files; a forked child writes none. `ready_file`: what they lie by."""

    def __init__(self, ready_file: Path) -> None:
        self._end = ready_file.with_suffix(END)
        self._pid = os.getpid()
        self._failed = self._written = False
        self._size = _ring_bytes(os.environ.get(OUTPUT_BYTES, ""))
        self._ring = _ring(ready_file.with_suffix(PRINTED), self._size)
        self._count = 0
        if not faulthandler.is_enabled():  # the user's own goes on to standard error
            with suppress(OSError):
                # Kept open for as long as the process lives: a signal handler writes to it.
                self._crash = ready_file.with_suffix(CRASH).open("wb", buffering=0)
                faulthandler.enable(self._crash)
        self._note_output()
        self._note_exits()
        atexit.register(self._in_peace)

    def failed(self, error: BaseException, trace: TracebackType | None) -> None:
        """Write down an exception that is about to end the program; it replaces an exit."""
        if os.getpid() == self._pid and not self._failed:
            self._failed = True
            self._write(_of_exception(error, trace))

    def _in_peace(self) -> None:
        """Python has come to its end: a process without this has been killed, or ended by C."""
        if os.getpid() == self._pid and not self._written:
            self._write({"kind": IN_PEACE, "code": 0})
            if self._end.parent.name.startswith(FOLDER):
                shutil.rmtree(self._end.parent, ignore_errors=True)

    def _write(self, about: dict[str, Any]) -> None:
        self._written = True
        _write(self._end, {"printed": self._printed(), "versions": _versions(), **about})

    # The ring of what has been printed.

    def _note_output(self) -> None:
        """See what Python writes to the standard streams, whoever holds them by then."""
        for stream in {sys.stdout, sys.stderr} - {None}:
            with suppress(AttributeError):  # an object without attributes of its own
                vars(stream)["write"] = self._noting(stream.write)

    def _noting(self, write: Callable[[str], int]) -> Callable[[str], int]:
        def write_and_note(text: str) -> int:
            count = write(text)
            try:  # noqa: SIM105  (`suppress` takes half as long again)
                self._note(text)
            except Exception:  # noqa: BLE001, S110  (no program may fail for it)
                pass
            return count

        return write_and_note

    def _note(self, text: str) -> None:
        if self._ring is None or os.getpid() != self._pid:
            return
        # `print` writes each argument by itself: 0.8 us for each of these (measured).
        data = text.encode("utf-8", "replace")[-self._size :]
        begin = COUNT_BYTES + self._count % self._size
        end = begin + len(data)
        if end <= COUNT_BYTES + self._size:
            self._ring[begin:end] = data
        else:
            cut = COUNT_BYTES + self._size - begin
            self._ring[begin:] = data[:cut]
            self._ring[COUNT_BYTES : end - self._size] = data[cut:]
        self._count += len(data)
        COUNT.pack_into(self._ring, 0, self._count)

    def _printed(self) -> str:
        return printed(bytes(self._ring))[-RING_BYTES:] if self._ring is not None else ""

    # Exits that no exception tells of.

    def _note_exits(self) -> None:
        """`sys.exit(1)` and `os._exit(3)` say where they were called.

        Replaced, because Python has no audit event for either, and an exit code alone says nothing
        of the line.
        """
        usual_exit, usual_end = sys.exit, os._exit

        def exit(status: Any = None, /) -> NoReturn:
            self._exits(EXITED, status)
            usual_exit(status)

        def _exit(status: int) -> NoReturn:
            self._exits("os._exit", status)
            usual_end(status)

        exit.__module__, _exit.__module__ = "sys", "os"
        exit.__qualname__, _exit.__qualname__ = "exit", "_exit"
        vars(sys)["exit"], vars(os)["_exit"] = exit, _exit

    def _exits(self, call: str, status: Any) -> None:
        if os.getpid() != self._pid or self._failed:
            return
        if status in (None, 0, False):
            self._written = False
            if call == "os._exit":
                self._in_peace()
            return
        with suppress(Exception):  # it must not keep the program from its end
            frame = sys._getframe(2)  # noqa: SLF001
            if frame.f_globals.get("__name__") == "multiprocessing.spawn":
                return  # it hands on the code of a worker that has ended before
            code = status if isinstance(status, int) else 1
            text = "" if isinstance(status, int) else str(status)[:MAX_MESSAGE]
            error = sys.exc_info()[1]
            if error is None or isinstance(error, SystemExit):
                about = {"kind": call, "message": text}
                about |= _places([*walk_stack(frame)][::-1])
            else:  # `except Exception: sys.exit(1)`: of this it ends
                about = _of_exception(error, error.__traceback__)
            self._write({**about, "code": code})


def _write(path: Path, about: dict[str, Any]) -> None:
    with suppress(OSError):  # who started us is gone
        write_ready_file(path, {"time": time.time(), "pid": os.getpid(), **about})


def note_launcher(folder: Path, error: BaseException | None) -> None:
    """Write down of what a process ends that is no rank: a launcher, or a program at its start.

    Without an exception it was to be a rank, and its parent alone knows its exit code.
    """
    path = rendezvous_file(folder).with_suffix(END)
    program = Path(sys.argv[0] if sys.argv else sys.executable).name
    about = {"program": program, "local_rank": _local_rank()}
    about |= _of_exception(error, error.__traceback__) if error else {"kind": EXITED}
    worker = getattr(error, "error_index", None)
    if isinstance(worker, int):  # torch.multiprocessing.spawn says of which its own failure is
        code = getattr(error, "exit_code", None)
        about |= {"worker": worker, "code": code, "message": str(error)[-MAX_MESSAGE:]}
    _write(path, about)


def _local_rank() -> int | None:
    """Return the number of a rank that is yet to be, on the first node."""
    given = os.environ.get("LOCAL_RANK", "")
    first = os.environ.get("NODE_RANK") or os.environ.get("GROUP_RANK") or "0"
    return int(given) if given.isdecimal() and first == "0" else None


def kept_on_this_host() -> Path:
    """Make a folder for the files of a rank whose session is on another host, and cannot see them.

    It goes with the rank, unless that fails; what is left goes a day later, by the next `dap-mux
    run` there (`dap_mux.system.temporary_folders`).
    """
    folder = Path(tempfile.mkdtemp(prefix=FOLDER))
    (folder / ".running").touch()
    return folder


def printed(ring: bytes) -> str:
    """Return the text in a ring, oldest first; its first line may lack its beginning."""
    size = len(ring) - COUNT_BYTES
    if size <= 0:
        return ""  # no ring of ours
    (count,) = COUNT.unpack_from(ring)
    data = ring[COUNT_BYTES:]
    at = count % size
    whole = data[:at] if count < size else data[at:] + data[:at]
    return whole.decode("utf-8", "replace")


def _ring_bytes(wanted: str) -> int:
    is_number = wanted.isascii() and wanted.isdigit() and len(wanted) < len(str(2**64))
    return max(RING_BYTES, min(int(wanted), MAX_RING_BYTES)) if is_number else RING_BYTES


def _ring(path: Path, size: int) -> mmap.mmap | None:
    """Return memory that the system keeps as this file, also when the process is killed."""
    with suppress(OSError, ValueError):
        path.write_bytes(bytes(COUNT_BYTES + size))
        with path.open("r+b") as file:
            return mmap.mmap(file.fileno(), COUNT_BYTES + size)
    return None


def _of_exception(error: BaseException, trace: TracebackType | None) -> dict[str, Any]:
    return {
        "kind": "exception",
        "type": type(error).__name__,
        "message": message_of(error),
        **_places([(one.tb_frame, one.tb_lineno) for one in entries(trace)]),
        **_syntax_place(error),
    }


def message_of(error: BaseException) -> str:
    """Return the text of an exception, whose class may fail at it."""
    try:
        return str(error)[:MAX_MESSAGE]
    except Exception:  # noqa: BLE001  (the user's own __str__)
        return ""


def _syntax_place(error: BaseException) -> dict[str, Any]:
    """Return the place that a syntax error names: it has no frame of the program."""
    if isinstance(error, SyntaxError) and error.filename:
        place = {"file": error.filename, "line": error.lineno or 0, "function": ""}
        return {**place, "called": "", "source": (error.text or "").strip(), "values": {}}
    return {}


def entries(trace: TracebackType | None) -> Iterator[TracebackType]:
    """The entries of a traceback, outermost first."""
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _places(stack: list[tuple[FrameType, int]]) -> dict[str, Any]:
    """Describe a stack, outermost first: the program's own innermost line, and what it called."""
    own = [each for each in stack if not is_library(each[0].f_code.co_filename)]
    if not own:
        return {}
    frame, line = own[-1]
    inner = stack[-1][0].f_code.co_name if stack[-1] is not own[-1] else ""
    source = linecache.getline(frame.f_code.co_filename, line, frame.f_globals).strip()
    return {
        "file": frame.f_code.co_filename,
        "line": line,
        "function": frame.f_code.co_name,
        "source": source[:MAX_VALUE],
        "called": inner,
        "stack": [
            f"{Path(each.f_code.co_filename).name}:{number} in {each.f_code.co_name}"
            for each, number in own[-MAX_FRAMES:]
        ],
        "values": values_on(frame, line),
    }


def is_library(file: str) -> bool:
    """Whether this is no code of the program's: Python's, what is installed, or ours."""
    if not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts):
        return True
    folders = [get_paths()[name] + os.sep for name in ("stdlib", "platstdlib")]
    return file.startswith(("<frozen ", str(Path(__file__).parent) + os.sep, *folders))


# The values of a line's names.


def values_on(frame: FrameType, line: int) -> dict[str, str]:
    """Return the names that a line reads, with their values: found without running user code."""
    found: dict[str, str] = {}
    with suppress(Exception):  # a source that has changed, or a frame of another kind
        for node in _names_on("".join(linecache.getlines(frame.f_code.co_filename)), line):
            name = ast.unparse(node)
            value = value_of(node, frame)
            if name not in found and value is not MISSING and not _is_code(value):
                found[name] = redacted(name, value)
            if len(found) == MAX_VALUES:
                break
    return found


def _names_on(source: str, line: int) -> Iterator[ast.AST]:
    """Yield the names and attributes that the statement at a line reads."""
    statements = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    if not statements:
        return
    innermost = max(statements, key=lambda node: node.lineno)
    waiting: list[ast.AST] = [innermost]
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield node
        inside = [each for each in ast.iter_child_nodes(node) if not isinstance(each, ast.stmt)]
        waiting.extend(inside)


def _is_code(value: Any) -> bool:
    return isinstance(value, type) or callable(value) or type(value).__name__ == "module"


def redacted(name: str, value: Any) -> str:
    """Return a value as text, bounded, without secrets."""
    return without_secrets(_text(name, value, 2), name)[:MAX_VALUE]


def _text(name: str, value: Any, depth: int) -> str:
    """Describe a value by its type and contents, without `__repr__` of the program's classes."""
    if isinstance(value, str | bytes) and kind_of(name):
        return without_secrets(repr(value), name)
    kind = type(value)
    if kind in (int, float, complex, bool, type(None)):
        return repr(value)
    if kind in (str, bytes):
        return repr(value[:MAX_VALUE])
    if kind in (list, tuple, set, frozenset) and depth:
        items = [_text(name, each, depth - 1) for each in islice(value, MAX_ITEMS)]
        more = [f"... {len(value)} in all"] if len(value) > MAX_ITEMS else []
        return f"{kind.__name__}({', '.join(items + more)})"
    if kind is dict and depth:
        some = islice(value.items(), MAX_ITEMS)
        items = [f"{_text('', key, 0)}: {_text(str(key), each, depth - 1)}" for key, each in some]
        more = [f"... {len(value)} in all"] if len(value) > MAX_ITEMS else []
        return f"{{{', '.join(items + more)}}}"
    summary = seen(value)
    return repr(summary) if summary is not value else f"<{kind.__name__}>"


def _versions() -> dict[str, str]:
    """Return the versions of imported packages, so that ranks can be compared."""
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name, module in [*sys.modules.items()]:
        version = getattr(module, "__dict__", {}).get("__version__")
        if "." not in name and isinstance(version, str) and len(found) < MAX_VERSIONS:
            found[name] = version[:40]
    return found
