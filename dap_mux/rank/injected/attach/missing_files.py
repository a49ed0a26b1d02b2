"""Breakpoints in files that a rank has not, but whose code it runs.

Private interfaces of debugpy, so whoever calls this must expect any exception; then debugpy behaves
as it does by itself.
"""

from __future__ import annotations

import dis
import linecache
import os
import sys
from contextlib import suppress
from importlib import import_module
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Iterator

KEPT_AS = "missing_files_of_dap_mux"
STOP = "make_thread_suspend_single_notification"
MAX_FILES = 4096
MAX_CODES = 1024
LOOKING = "looks_for_code_of_dap_mux"


class Missing:
    """A file that does not exist here, and the breakpoints in it: the line of each id."""

    def __init__(self) -> None:
        self.known = False
        self.names: set[str] = set()  # as clients have it
        self.lines: dict[int, int] = {}
        self.codes: set[CodeType] = set()

    def forget_removed(self, breakpoints: dict[str, dict[int, Any]]) -> None:
        """Keep the breakpoints that are still set."""
        present = {id for by_id in breakpoints.values() for id in by_id}
        self.lines = {id: line for id, line in self.lines.items() if id in present}


# Code that was pickled by value, or executed from a text, bears the name of a file of another
# machine. debugpy drops breakpoints in files that do not exist; here they are kept, and answered as
# debugpy does until such code is known: then each is told to be verified.
def keep_breakpoints(debugger: Any) -> None:
    """From now on `debugger`, a PyDB, keeps breakpoints in files that do not exist."""
    with debugger._main_lock:  # noqa: SLF001  (no request is handled meanwhile)
        _tell_at_stops(debugger)
        if KEPT_AS not in vars(debugger):
            _patch(debugger)
        _take_up(debugger)


def _patch(debugger: Any) -> None:
    files: dict[str, Missing] = {}
    paths = import_module("pydevd_file_utils")
    api = import_module("_pydevd_bundle.pydevd_api").PyDevdAPI
    plain_exists, plain_add = paths.exists, api.add_breakpoint
    absent = api.ADD_BREAKPOINT_FILE_NOT_FOUND

    def exists(path: str) -> bool:
        return path in files or plain_exists(path)

    def add(self: Any, py_db: Any, path: str, kind: str, id: int, *rest: Any, **named: Any) -> Any:
        result = plain_add(self, py_db, path, kind, id, *rest, **named)
        with suppress(Exception):
            here = paths.absolute_path(self.filename_to_server(path))
            if result.error_code == absent and len(files) < MAX_FILES:
                files[here] = Missing()
                result = plain_add(self, py_db, path, kind, id, *rest, **named)
            if here in files and not plain_exists(here):
                _also_by_its_own_name(py_db, paths, path, here, id)
                file = files[here]
                file.names.add(path)
                file.lines[id] = result.translated_line
                file.forget_removed(py_db.file_to_id_to_line_breakpoint)
                if not file.known:
                    result.error_code = absent
                    _look_for_code(py_db)
        return result

    setattr(debugger, KEPT_AS, files)
    vars(paths)["exists"], api.add_breakpoint = exists, add


def _take_up(debugger: Any) -> None:
    """Keep the breakpoints that were dropped before: requests do not wait for what is evaluated."""
    api = import_module("_pydevd_bundle.pydevd_api").PyDevdAPI()
    kept = {id for by_id in debugger.file_to_id_to_line_breakpoint.values() for id in by_id}
    for (_, id), (_, asked) in list(debugger.api_received_breakpoints.items()):
        if isinstance(id, int) and id not in kept and asked[1] == "python-line":
            api.add_breakpoint(debugger, *asked)


def _also_by_its_own_name(py_db: Any, paths: Any, path: str, here: str, id: int) -> None:
    """Code by value bears the name that the file has where it was written, whatever is mapped."""
    if path == here or not os.path.isabs(path):  # noqa: PTH117
        return
    mapped, own = map(paths.canonical_normalized_path, (here, path))
    breakpoint = py_db.file_to_id_to_line_breakpoint.get(mapped, {}).get(id)
    if breakpoint is None:
        return
    named = py_db.file_to_id_to_line_breakpoint.setdefault(own, {})
    named[id] = breakpoint
    py_db.consolidate_breakpoints(own, named, py_db.breakpoints)
    key = paths.normcase_from_client(path), id
    received = py_db.api_received_breakpoints
    received[key[0], ("by its own name", id)] = own, received[key][1]
    py_db.on_breakpoints_changed()


def _look_for_code(debugger: Any) -> None:
    """Look for functions of missing files in a thread: there may be many modules."""
    if vars(debugger).get(LOOKING):
        return  # it has yet to compare what it finds, which waits for the end of this request

    def look() -> None:
        codes = list(_codes())
        with debugger._main_lock:  # noqa: SLF001  (what is told follows the answer)
            vars(debugger)[LOOKING] = False
            _learn(debugger, codes)

    vars(debugger)[LOOKING] = True
    start = import_module("_pydevd_bundle.pydevd_daemon_thread").run_as_pydevd_daemon_thread
    start(debugger, look)


def _codes() -> Iterator[CodeType]:
    """Yield the code of the functions in modules, and in classes there.

    Never ask `gc.get_objects()` for others: it holds tuples that the program's threads are still
    making, and making them then fails there with a SystemError.
    """
    for module in list(sys.modules.values()):
        if not isinstance(module, ModuleType):
            continue
        names = object.__getattribute__(module, "__dict__")  # a lazy module is not loaded by it
        for each in list(names.values()):
            members = list(vars(each).values()) if isinstance(each, type) else [each]
            yield from (one.__code__ for one in members if type(one) is FunctionType)


def _tell_at_stops(debugger: Any) -> None:
    """A stop in code of a missing file shows that there is such code.

    Until `disconnect`, like what `reports` does; without that it is not told.
    """
    factory = debugger.cmd_factory
    plain_stop = vars(factory).get(STOP)
    if plain_stop is None:
        return

    def stop(py_db: Any, thread_id: str, *rest: Any) -> Any:
        with suppress(Exception):
            frames = py_db.suspended_frames_manager.get_frames_list(thread_id)
            _learn(debugger, [frame.f_code for frame in frames])
        return plain_stop(py_db, thread_id, *rest)

    setattr(factory, STOP, stop)


def _learn(debugger: Any, codes: list[CodeType]) -> None:
    """There is this code; some may be of missing files."""
    for path, file in list(getattr(debugger, KEPT_AS).items()):
        if not file.known:
            names = {path, *file.names}
            found = [code for code in codes if code.co_filename in names][:MAX_CODES]
            file.codes.update(found)
            if found:
                _tell_known(debugger, file)


def _tell_known(debugger: Any, file: Missing) -> None:
    """There is code of this file: its breakpoints are verified."""
    file.known = True
    command = type(debugger.cmd_factory.make_thread_killed_message(1))
    for id, line in list(file.lines.items()):
        verified = {"id": id, "verified": True, "line": line}
        body = {"reason": "changed", "breakpoint": verified}
        event = {"type": "event", "event": "breakpoint", "body": body}
        debugger.writer.add_command(command(0, 0, event, is_json=True))


def bring(path: str, text: str) -> str:
    """Take the text of a missing file; return whether it is that of the code here, or `differs`.

    It is what tracebacks and clients without the file show from now on.
    """
    debugger = import_module("pydevd").get_global_debugger()
    file = getattr(debugger, KEPT_AS)[path]
    try:
        written = {_outline(code) for code in _with_inner(compile(text, path, "exec", 0, True))}
    except (SyntaxError, ValueError):
        return "differs"
    if any(_outline(code) not in written for code in file.codes):
        return "differs"
    for name in (path, *file.names):
        linecache.cache[name] = len(text), None, text.splitlines(True), name
    return "same"


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _with_inner(constant)


def _outline(code: CodeType) -> tuple[object, ...]:
    """Return a key that code compiled from one text shares, even where a debugger changed it."""
    lines = tuple(sorted({line for _, line in dis.findlinestarts(code) if line}))
    values = tuple(repr(each) for each in code.co_consts if not isinstance(each, CodeType))
    return code.co_name, code.co_names, code.co_varnames, lines, values
