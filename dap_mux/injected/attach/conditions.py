"""Evaluate the conditions of breakpoints as cheaply as debugpy allows, and note what they take.

debugpy compiles a condition each time that its line runs, which takes longer than all the rest.
Private interfaces of debugpy, so whoever calls this must expect any exception.
"""

from __future__ import annotations

from importlib import import_module
from time import perf_counter
from traceback import extract_stack, format_exception, format_exception_only
from typing import Any

WINDOW_S = 1.0
"""The period over which the cost of a condition is measured, in seconds."""


class Cost:
    """The cost of one condition: evaluations a second, and the share of time that they take."""

    def __init__(self, code: Any) -> None:
        self.code = code
        self.rate = 0.0
        self.share = 0.0
        self._since = perf_counter()
        self._hits = 0
        self._seconds = 0.0

    def add(self, start: float) -> None:
        """One evaluation has come to its end."""
        now = perf_counter()
        self._hits += 1
        self._seconds += now - start
        window = now - self._since
        if window >= WINDOW_S:
            self.rate, self.share = self._hits / window, self._seconds / window
            self._since, self._hits, self._seconds = now, 0, 0.0


def compile_once(debugger: Any) -> None:
    """From now on `debugger`, a PyDB, keeps each breakpoint's condition compiled."""
    if "handle_breakpoint_condition" in vars(debugger):
        return
    usual = debugger.handle_breakpoint_condition

    def evaluate(info: Any, breakpoint: Any, frame: Any) -> Any:
        cost = getattr(breakpoint, "dap_mux_cost", None)
        if cost is None:
            cost = breakpoint.dap_mux_cost = Cost(_compiled(breakpoint))
        if cost.code is None:
            return usual(info, breakpoint, frame)
        start = perf_counter()
        try:
            return eval(cost.code, frame.f_globals, frame.f_locals)  # noqa: S307  (the user's own)
        except Exception as error:  # noqa: BLE001  (whatever the user's expression raises)
            return _failed(debugger, info, breakpoint.condition, error, frame)
        finally:
            cost.add(start)

    debugger.handle_breakpoint_condition = evaluate


def _failed(debugger: Any, info: Any, condition: str, error: Exception, frame: Any) -> bool:
    """Tell of an error in a condition as debugpy does; return whether the line stops."""
    if not isinstance(error, debugger.skip_print_breakpoint_exception):
        own = error.__traceback__  # of `evaluate`: the user's frames begin behind it
        trace = "".join(format_exception(type(error), error, own and own.tb_next))
        text = "Error while evaluating expression in conditional breakpoint: "
        api = import_module("_pydevd_bundle.pydevd_api").PyDevdAPI()
        api.send_error_message(debugger, f"{text}{condition}\n{trace}")
    if isinstance(error, debugger.skip_suspend_on_breakpoint_exception):
        return False
    message = "".join(format_exception_only(type(error), error))
    told = f"Condition:\n{condition}\n\nError:\n{message}"
    info.conditional_breakpoint_exception = (told, extract_stack(frame))
    return True


def _compiled(breakpoint: Any) -> Any:
    """None where debugpy has to do it: it counts hits, and says what is wrong with the text."""
    if getattr(breakpoint, "hit_condition", None) or not breakpoint.condition:
        return None
    try:
        # as `eval` takes a text
        return compile(breakpoint.condition.lstrip(" \t"), "<string>", "eval", 0, True)
    except (SyntaxError, ValueError):
        return None
