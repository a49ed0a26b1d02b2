"""Let a rank wait in the condition of a barrier breakpoint for the other ranks."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from importlib import import_module
from types import CodeType
from typing import Any

MARK = "  # dap-mux waits "
"""Ends a condition; behind it is JSON: a number of the session's, the expression that is compared
or null, and the condition on which the line stops without waiting, or null."""
HELD = "dapMuxHeld"
DECIDED = b'"dapMuxDecided"'
"""The event from the session with what becomes of a rank that is held."""
KEPT_AS = "dap_mux_waits"  # another name than that of versions which waited otherwise
MAX_CHARS = 1 << 16  # of a value that is reported; a longer one is so by its beginning and digest
MAX_NAME = 256
LOOK_AGAIN_S = 1.0
PLAIN = ("bool", "float", "int", "str")
FILE_NAME = "<builtin dap_mux>"


def compare_in_conditions(debugger: Any, summaries: str) -> None:
    """From now on such conditions of `debugger`, a PyDB, tell their values; until its session ends.

    `summaries`: the source of `tensor_summary`.
    """
    kept = vars(debugger).get(KEPT_AS)
    if kept is None or kept.process != os.getpid():
        kept = Comparisons(debugger, summaries)
        _install(debugger, kept)
        setattr(debugger, KEPT_AS, kept)
    _listen(debugger.reader, kept)
    kept.open()


# For debugpy the condition is that of all breakpoints on the line, with a comment that is read
# here. So a debugpy in which this has failed stops at the line, each rank by itself. Private
# interfaces of debugpy, so whoever calls this must expect any exception.
def _install(debugger: Any, comparisons: Comparisons) -> None:
    usual, left = debugger.handle_breakpoint_condition, debugger.on_disconnect

    def compare_or_evaluate(info: Any, breakpoint: Any, frame: Any) -> Any:
        stops = usual(info, breakpoint, frame)
        if not stops or MARK not in (breakpoint.condition or ""):
            return stops
        # A condition that fails stops the rank, and is shown to its user.
        failed = getattr(info, "conditional_breakpoint_exception", None) is not None
        return failed or comparisons.stops_at(breakpoint, frame)

    def free_and_disconnect() -> None:
        comparisons.close()
        left()

    debugger.handle_breakpoint_condition = compare_or_evaluate
    debugger.on_disconnect = free_and_disconnect


def _listen(reader: Any, comparisons: Comparisons) -> None:
    """Take decisions in the thread that reads, before debugpy looks at them: it knows no events."""
    process = reader.process_net_command_json
    if getattr(process, "__name__", "") == "decide_wait_or_process":
        return

    def decide_wait_or_process(debugger: Any, message: Any, *rest: Any, **named: Any) -> Any:
        if DECIDED not in message[:256]:
            return process(debugger, message, *rest, **named)
        with suppress(ValueError, KeyError, TypeError):  # it is not what it should be
            said = json.loads(message)["body"]
            comparisons.decide(said["hold"], said["stop"] is True)
        return None

    reader.process_net_command_json = decide_wait_or_process


# A stop, its stack and a `continue` cost debugpy ten times as much, and almost every hit of a
# differ breakpoint runs on. So where the condition of such a breakpoint holds, the rank reports
# that it is there, with the value that is compared, and the condition returns as soon as the
# session has decided: true where the ranks stop, and then the line stops as at any breakpoint. Only
# the thread that is there waits: heartbeats and watchdogs of the rank live on. What frees it
# without a decision is the end of its session, and it looks by itself whether there still is one.
class Comparisons:
    """The threads of this process that wait in such conditions: one after the other."""

    def __init__(self, debugger: Any, summaries: str) -> None:
        self.process = os.getpid()
        self._debugger = debugger
        self._summaries = summaries
        self._seen: Any = None
        self._command = import_module("_pydevd_bundle.pydevd_net_command").NetCommand
        self._details = import_module("_pydevd_bundle.pydevd_xml").get_variable_details
        self._text_of = import_module("_pydevd_bundle.pydevd_safe_repr").SafeRepr
        # Not those of the program, which gevent may have replaced.
        saved = import_module("_pydev_bundle._pydev_saved_modules")
        self._new_lock = saved.thread.allocate_lock
        self._turn, self._changing = self._new_lock(), self._new_lock()
        self._open = self._stops = False
        self._number = 0
        self._freed: Any = None  # the lock that the thread waits for

    def open(self) -> None:
        """A session decides from now on."""
        self._open = True

    def close(self) -> None:
        """Free the thread that waits: no session decides any longer."""
        with self._changing:
            self._open = False
            self._free(stops=False)

    def decide(self, number: int, stops: bool) -> None:
        """The session has decided what becomes of the thread that waits."""
        with self._changing:
            if number == self._number:
                self._free(stops)

    def _free(self, stops: bool) -> None:
        freed, self._freed = self._freed, None
        if freed is not None:
            self._stops = stops
            freed.release()

    def stops_at(self, breakpoint: Any, frame: Any) -> bool:
        """Report that a thread is there, and wait; return whether the line stops."""
        if os.getpid() != self.process:
            return False  # a forked child
        if not hasattr(breakpoint, "dap_mux_waits"):
            breakpoint.dap_mux_waits = _read(breakpoint.condition)
        number, compared, others = breakpoint.dap_mux_waits
        try:
            if others is not None and _value(others, frame):
                return self._open
        except Exception:  # noqa: BLE001  (debugpy has evaluated it, too, and reported that)
            return self._open
        said = {"breakpoint": number, "value": ""}
        if compared is not None:
            said.update(self._compared(compared, frame))
        with self._turn:
            return self._wait(said, frame)

    def _compared(self, code: Any, frame: Any) -> dict[str, str]:
        """Evaluate what is compared: its value, or what is wrong with it."""
        try:
            value = self._text(_value(code, frame))
        except Exception as error:  # noqa: BLE001  (whatever the user's expression raises)
            return {"problem": f"{type(error).__name__}: {error}"[:MAX_CHARS]}
        if len(value) > MAX_CHARS:
            digest = hashlib.sha256(value.encode("utf-8", "replace")).hexdigest()
            value = f"{value[:MAX_NAME]}… ({len(value)} characters, SHA-256 {digest})"
        return {"value": value}

    def _text(self, value: Any) -> str:
        """As debugpy answers `evaluate`."""
        if value is None or type(value) in (bool, float, int):
            return repr(value)
        if value.__class__.__name__ not in PLAIN:
            value = self._summary(value)
        found: tuple[Any, ...] = self._details(value, to_string=self._text_of(), context="watch")
        return str(found[4])

    def _summary(self, value: Any) -> Any:
        if self._seen is None:
            names: dict[str, Any] = {"__name__": "dap_mux_tensor_summary"}
            exec(compile(self._summaries, FILE_NAME, "exec"), names)  # noqa: S102  (our own)
            self._seen = names["seen"]
        return self._seen(value)

    def _wait(self, said: dict[str, Any], frame: Any) -> bool:
        freed = self._new_lock()
        freed.acquire()
        with self._changing:
            if not self._open:
                return False
            self._number += 1
            number, self._freed, self._stops = self._number, freed, False
        body = {**said, "hold": number, "line": frame.f_lineno}
        body["function"] = frame.f_code.co_name[:MAX_NAME]
        event = {"type": "event", "event": HELD, "body": body}
        self._debugger.writer.add_command(self._command(0, 0, event, is_json=True))
        try:
            while not freed.acquire(True, LOOK_AGAIN_S):
                if not self._is_debugged():
                    return False
        finally:
            with self._changing:
                self._freed = None
        return self._stops

    def _is_debugged(self) -> bool:
        reader = self._debugger.reader
        return bool(self._debugger.is_attached() and reader and reader.is_alive())


def _read(condition: str) -> tuple[int, Any, Any]:
    number, compared, others = json.loads(condition.rpartition(MARK)[2])
    return number, _compiled(compared), _compiled(others)


def _compiled(expression: str | None) -> Any:
    """Return its code, or an expression that fails as it does where it is not Python."""
    if expression is None:
        return None
    try:
        return compile(f"({expression}\n)", "<string>", "eval", 0, True)
    except (SyntaxError, ValueError):
        return expression


def _value(code: Any, frame: Any) -> Any:
    names = frame.f_globals
    if isinstance(code, CodeType) and any(isinstance(one, CodeType) for one in code.co_consts):
        names = {**names, **frame.f_locals}  # a comprehension sees no locals but as globals
    return eval(code, names, frame.f_locals)  # noqa: S307  (the user's own)
